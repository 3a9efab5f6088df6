"""The forms of a pool's configuration: of a new pool, and of an existing one."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.number_fields import NumberField, read_numbers
from holdfast.inventory.console.pools.pool_paths import POOL, pool_of
from holdfast.inventory.pools.model import CreatePool, PoolChange, PoolWithMembers, UpdatePool
from holdfast.inventory.problems import NAME_TAKEN, POOL_NOT_ACTIVE, STALE
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import MAX_QUANTITY
from holdfast.kit.contract.command import Errors, check
from holdfast.kit.contract.messages import message, translatable
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form
from holdfast.kit.pages.language import language_of

NEW_POOL = f"{HOME}/pools/new"

FORM_PROBLEMS = (NAME_TAKEN, POOL_NOT_ACTIVE, STALE)
"""Problems that the form explains."""

MAX_TRIES = 5
"""How often a change is tried while the stock of the pool changes at the same time."""

POLICIES = {
    "adopt": translatable("Correct the pool to that number"),
    "enforce": translatable("Put back the number of the pool"),
    "flag": translatable("Ask me: list the difference under Sync"),
}
"""The words for the policies on quantities that are changed at the platform."""

POOL_LABELS = {
    "name": translatable("Name"),
    "unit": translatable("Counted in"),
    "quantity": translatable("How many do you have?"),
    "buffer": translatable("Safety stock"),
    "low_stock_at": translatable("Low stock at"),
    "policy": translatable("If somebody changes the number in your shop"),
    "reason": translatable("Reason (optional, shown in the history)"),
}

NUMBERS = {
    "quantity": NumberField(0, MAX_QUANTITY, 30),
    "buffer": NumberField(0, MAX_QUANTITY, 2),
    "low_stock_at": NumberField(0, MAX_QUANTITY, 10),
}
REQUIRED = {
    "name": translatable("Enter a name, such as Honey jars."),
    "unit": translatable("Enter a unit, such as units or g."),
    "buffer": translatable("Enter a number, such as 2, or 0 for no safety stock."),
    "policy": translatable("Choose what is done."),
}
"""The fields that must not be empty, with what is said if they are."""

DEFAULT_UNIT = "units"

NEW_POOL_VALUES: Mapping[str, Any] = {"unit": DEFAULT_UNIT, "buffer": 0}
"""The values in the form of a new pool."""


class PoolForms:
    """Answers requests for the forms of a new pool and of an existing one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._create, self._update = console.run["create_pool"], console.run["update_pool"]

    def routes(self) -> list[Route]:
        return [
            self._console.route(NEW_POOL, "new_pool", self.create, "POST"),
            self._console.route(f"{POOL}/edit", "edit_pool", self.edit, "POST"),
        ]

    async def create(self, session: Session, request: Request) -> Reply:
        """Show the form of a new pool, or create it."""
        if request.method != "POST":
            return self._form(session, request, None, NEW_POOL_VALUES)
        fields = await self._read(session, request)
        pool = await try_form(
            lambda: forms.run_once(self._create, merchant(session), _create_command(fields), fields, PoolChange),
            *FORM_PROBLEMS,
        )
        if isinstance(pool, FormRefusal):
            return self._form(session, request, None, fields, pool)
        return self._console.redirect(request, f"{HOME}/pools/{pool.pool.id}")

    async def edit(self, session: Session, request: Request) -> Reply:
        """Show the form of a pool, or change the pool."""
        if request.method != "POST":
            pool = await pool_of(self._console, session, request)
            return self._form(session, request, pool, _form_values(pool))
        fields = await self._read(session, request)
        outcome = await try_form(lambda: self._change(session, request, fields), *FORM_PROBLEMS)
        pool = await pool_of(self._console, session, request)
        if isinstance(outcome, FormRefusal):
            return self._form(session, request, pool, fields, outcome)
        return self._console.redirect(request, f"{HOME}/pools/{pool.id}")

    async def _read(self, session: Session, request: Request) -> Mapping[str, str]:
        """The fields of a form. The default unit is stored in English, and typed in the language of the page."""
        fields = await self._console.signed_in.read(session, request)
        return {**fields, "unit": DEFAULT_UNIT} if fields.get("unit") == _default_unit(request) else fields

    async def _change(self, session: Session, request: Request, fields: Mapping[str, str]) -> None:
        """Change a pool by a form. Raises `stale` unless the values that the form showed are still stored.

        The version of a pool also grows with every sale, which changes no value of the form.
        """
        for _ in range(MAX_TRIES):
            pool = await pool_of(self._console, session, request)
            command = _update_command(pool, fields)
            stored_values = _form_values(pool)
            if {**stored_values, **_typed_values(fields)} == stored_values:
                return
            if fields.get("seen") != _form_values_json(pool):
                break
            try:
                await self._update(merchant(session), command)
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
        refusal: FormRefusal = NOT_REFUSED,
    ) -> Reply:
        return self._console.page(
            session,
            request,
            "pools/pool_form.html",
            refusal.status,
            pool=pool,
            stored_values=_with_default_unit(_form_values(pool), request)
            if pool and refusal.code == STALE.code
            else {},
            # A form sent after that refusal comes from a merchant who has seen the stored values.
            seen=_form_values_json(pool) if pool and refusal.code in {"", STALE.code} else values.get("seen", ""),
            values=_with_default_unit(values, request),
            errors=refusal.errors,
            code=refusal.code,
            labels=POOL_LABELS,
            policies=POLICIES,
            once=forms.new_token(),
        )


def _default_unit(request: Request) -> str:
    """The default unit in the language of a page."""
    return SITE.texts(language_of(request)).gettext(DEFAULT_UNIT)


def _with_default_unit(values: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
    """The values of a form as it shows them: the default unit in the language of the page."""
    return {**values, "unit": _default_unit(request)} if values.get("unit") == DEFAULT_UNIT else values


def _form_values(pool: PoolWithMembers) -> dict[str, str]:
    """The values of a pool in its form."""
    return {
        "name": pool.name,
        "unit": pool.unit,
        "buffer": str(pool.buffer),
        "low_stock_at": "" if pool.low_stock_at is None else str(pool.low_stock_at),
        "policy": pool.policy,
        "allow_negative": "on" if pool.allow_negative else "",
    }


def _form_values_json(pool: PoolWithMembers) -> str:
    """The values of the form, for a hidden field."""
    return msgspec.json.encode(_form_values(pool)).decode()


def _typed_values(fields: Mapping[str, str]) -> dict[str, str]:
    """The typed values of the form of a pool."""
    names = ("name", "unit", "buffer", "low_stock_at", "policy")
    return {**{name: fields.get(name, "") for name in names}, "allow_negative": fields.get("allow_negative", "")}


def _empty_errors(fields: Mapping[str, str], names: Iterable[str]) -> Errors:
    """The errors of those of the fields that are empty."""
    return {name: [message(text)] for name in names if not fields.get(name) and (text := REQUIRED[name])}


def _create_command(fields: Mapping[str, str]) -> CreatePool:
    """The command of a form. Raises `validation_failed`."""
    texts = {name: fields[name] for name in ("name", "unit", "reason") if fields.get(name)}
    numbers, unread = read_numbers(fields, NUMBERS)
    unread |= _empty_errors(fields, ("name",))
    return check(CreatePool, {**texts, **numbers, "allow_negative": "allow_negative" in fields}, unread=unread)


def _update_command(pool: PoolWithMembers, fields: Mapping[str, str]) -> UpdatePool:
    """The command of a form, with every field of it. Raises `validation_failed`."""
    typed = _typed_values(fields)
    numbers, unread = read_numbers(typed, {name: NUMBERS[name] for name in ("buffer", "low_stock_at")})
    unread |= _empty_errors(typed, REQUIRED)
    texts = {name: typed[name] for name in ("name", "unit", "policy")}
    values = {"low_stock_at": None, **texts, **numbers}
    values |= {"pool_id": pool.id, "expected_version": pool.version, "allow_negative": bool(typed["allow_negative"])}
    return check(UpdatePool, values, unread=unread)
