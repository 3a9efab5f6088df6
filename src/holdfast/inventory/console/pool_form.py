"""The forms of a pool's configuration: a new pool, and another name, limit or rule of one that is there."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pool import POOL, pool_of
from holdfast.inventory.pools.model import CreatePool, PoolChange, PoolWithMembers, UpdatePool
from holdfast.inventory.problems import NAME_TAKEN, POOL_NOT_ACTIVE, STALE
from holdfast.kit.command import Errors, check, numbered
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages import once
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.problems import Problem
from holdfast.kit.said import marked, said

NEW_POOL = f"{HOME}/pools/new"

EXPLAINED = (NAME_TAKEN, POOL_NOT_ACTIVE, STALE)

TRIES = 5
"""How often a change is tried while the stock of the pool changes at the same time."""

POLICIES = {
    "adopt": marked("Take them over: the pool follows"),
    "enforce": marked("Overwrite them: the pool decides"),
    "flag": marked("Only report them"),
}
"""What becomes of quantities that somebody sets at the platform."""

LABELS = {
    "name": marked("Name"),
    "unit": marked("Counted in"),
    "quantity": marked("How many are there now"),
    "buffer": marked("Kept back as a buffer"),
    "low_stock_at": marked("Low stock at"),
    "policy": marked("Quantities that others set at the platform"),
    "reason": marked("Why (people see it in the history)"),
}

FRESH: Mapping[str, Any] = {"unit": "units", "quantity": 0, "buffer": 0}
"""What stands in the form of a new pool."""


class PoolForms:
    """Answers requests for the forms of a new pool and of one that is there."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._create, self._update = console.run["create_pool"], console.run["update_pool"]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(NEW_POOL, "new_pool", self.create, "POST"),
            self._console.route(f"{POOL}/edit", "edit_pool", self.edit, "POST"),
        ]

    async def create(self, session: Session, request: Request) -> Reply:
        """Show the form of a new pool, or make it."""
        if request.method != "POST":
            return self._form(session, request, None, FRESH)
        fields = await self._console.door.read(session, request)
        made = await tried(
            lambda: once.run(self._create, merchant(session), _new(fields), fields, PoolChange), *EXPLAINED
        )
        if isinstance(made, Refusal):
            return self._form(session, request, None, fields, made)
        return self._console.to(request, f"{HOME}/pools/{made.pool.id}")

    async def edit(self, session: Session, request: Request) -> Reply:
        """Show the form of a pool, or change the pool."""
        if request.method != "POST":
            pool = await pool_of(self._console, session, request)
            return self._form(session, request, pool, _shown(pool))
        fields = await self._console.door.read(session, request)
        done = await tried(lambda: self._changed(session, request, fields), *EXPLAINED)
        pool = await pool_of(self._console, session, request)
        if isinstance(done, Refusal):
            return self._form(session, request, pool, fields, done)
        return self._console.to(request, f"{HOME}/pools/{pool.id}")

    async def _changed(self, session: Session, request: Request, fields: Mapping[str, str]) -> None:
        """Change a pool as a form asks. What the form shows must be what is stored; else raises `stale`.

        The version of a pool grows with every sale, which changes nothing that the form shows.
        """
        for _ in range(TRIES):
            pool = await pool_of(self._console, session, request)
            asked = _asked(pool, fields)
            stored = _shown(pool)
            if {**stored, **_typed(fields)} == stored:
                return
            if fields.get("seen") != _seen(pool):
                break
            try:
                await self._update(merchant(session), asked)
            except Problem as problem:
                if problem.type is not STALE:
                    raise
            else:
                return
        raise STALE()

    def _form(
        self,
        session: Session,
        request: Request,
        pool: PoolWithMembers | None,
        values: Mapping[str, Any],
        refusal: Refusal = NOT_REFUSED,
    ) -> Reply:
        return self._console.page(
            session,
            request,
            "pool_form.html",
            refusal.status,
            pool=pool,
            stored=_shown(pool) if pool and refusal.code == STALE.code else {},
            # What is sent after that refusal is sent by somebody who has seen what is stored.
            seen=_seen(pool) if pool and refusal.code in {"", STALE.code} else values.get("seen", ""),
            values=values,
            errors=refusal.errors,
            code=refusal.code,
            labels=LABELS,
            policies=POLICIES,
            once=once.new(),
        )


def _shown(pool: PoolWithMembers) -> dict[str, str]:
    """A pool as its form shows it."""
    return {
        "name": pool.name,
        "unit": pool.unit,
        "buffer": str(pool.buffer),
        "low_stock_at": "" if pool.low_stock_at is None else str(pool.low_stock_at),
        "policy": pool.policy,
        "allow_negative": "on" if pool.allow_negative else "",
    }


def _seen(pool: PoolWithMembers) -> str:
    """The same as a hidden field."""
    return msgspec.json.encode(_shown(pool)).decode()


def _typed(fields: Mapping[str, str]) -> dict[str, str]:
    """What the form of a pool has been filled in with."""
    names = ("name", "unit", "buffer", "low_stock_at", "policy")
    return {**{name: fields.get(name, "") for name in names}, "allow_negative": fields.get("allow_negative", "")}


def _new(fields: Mapping[str, str]) -> CreatePool:
    """The command that a form asks for. Raises `validation_failed`."""
    names = ("name", "unit", "quantity", "buffer", "low_stock_at", "reason")
    values = numbered(CreatePool, {name: fields[name] for name in names if fields.get(name)})
    return check(CreatePool, {**values, "allow_negative": "allow_negative" in fields})


def _asked(pool: PoolWithMembers, fields: Mapping[str, str]) -> UpdatePool:
    """The command that a form asks for, with every field of it. Raises `validation_failed`."""
    typed = _typed(fields)
    may_be_empty = {"low_stock_at", "allow_negative"}
    unread: Errors = {
        name: [said("is required")] for name, text in typed.items() if not text and name not in may_be_empty
    }
    values = numbered(UpdatePool, typed)
    if not typed["low_stock_at"]:
        values["low_stock_at"] = None
    values |= {"pool_id": pool.id, "expected_version": pool.version, "allow_negative": bool(typed["allow_negative"])}
    return check(UpdatePool, values, unread=unread)
