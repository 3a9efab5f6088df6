"""The forms that change the stock of a pool: a correction, a count, and a transfer to another pool."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pool import POOL, pool_of
from holdfast.inventory.pools.model import ListPools, PoolList, PoolWithMembers
from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE
from holdfast.inventory.stock.model import (
    MOST,
    AdjustPoolQuantity,
    SetPoolQuantity,
    StockChange,
    TransferQuantity,
    Write,
)
from holdfast.kit.command import Errors, check, numbered
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages import once
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.said import Grouped, marked, said

EXPLAINED = (NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE)

WAYS = {
    "take": marked("Take out: broken, lost or used"),
    "add": marked("Add: found, or counted too low"),
    "restock": marked("Goods came in"),
}

LABELS = {
    "delta": marked("How many"),
    "way": marked("What happened"),
    "quantity": marked("How many"),
    "to_pool_id": marked("To which pool"),
    "reason": marked("Why (people see it in the history)"),
}

MOST_TARGETS = 1000
"""About so many pools can be chosen for a transfer; agents can name any."""

_AMOUNT = re.compile(r"[0-9]{1,15}")

Asked = Callable[[int, Mapping[str, str]], Write]


class Form(NamedTuple):
    """A form that changes the stock of a pool.

    name        of its page and its template
    operation   what it calls
    asked       the command that typed values ask for, given the id of the pool; raises `validation_failed`
    """

    name: str
    operation: str
    asked: Asked


class Target(Struct):
    """A pool to which something can be transferred."""

    id: int
    name: str


def adjustment(pool_id: int, fields: Mapping[str, str]) -> Write:
    """A correction: so many more, or so many less."""
    way = fields.get("way", "")
    number, unread = _amount("delta", fields, least=1)
    if way not in WAYS:
        unread["way"] = [said("is required")]
    values = {
        "pool_id": pool_id,
        "delta": -number if way == "take" else number,
        "kind": "restock" if way == "restock" else "adjust",
        "reason": fields.get("reason") or None,
    }
    return check(AdjustPoolQuantity, values, unread=unread)


def count(pool_id: int, fields: Mapping[str, str]) -> Write:
    """A count, which is good only if nothing has changed since the form was shown."""
    number, unread = _amount("quantity", fields)
    seen = numbered(SetPoolQuantity, {"expected_quantity": fields.get("seen", "")})
    values = {"pool_id": pool_id, "quantity": number, "reason": fields.get("reason") or None, **seen}
    return check(SetPoolQuantity, values, unread=unread)


def transfer(pool_id: int, fields: Mapping[str, str]) -> Write:
    """A transfer to another pool."""
    number, unread = _amount("quantity", fields, least=1)
    to = numbered(TransferQuantity, {"to_pool_id": fields.get("to_pool_id", "")})
    if not isinstance(to["to_pool_id"], int):
        unread["to_pool_id"] = [said("is required")]
    values = {"from_pool_id": pool_id, "quantity": number, "reason": fields.get("reason") or None, **to}
    return check(TransferQuantity, values, unread=unread)


FORMS = (
    Form("adjust", "adjust_pool_quantity", adjustment),
    Form("count", "set_pool_quantity", count),
    Form("transfer", "transfer_quantity", transfer),
)


class QuantityPages:
    """Answers requests for the forms that change the stock of a pool."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list = console.run["list_pools"]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(f"{POOL}/{form.name}", f"{form.name}_pool", self._answer(form), "POST")
            for form in FORMS
        ]

    def _answer(self, form: Form) -> Callable[[Session, Request], Awaitable[Reply]]:
        async def answer(session: Session, request: Request) -> Reply:
            if request.method != "POST":
                return await self._shown(session, request, form, {})
            fields = await self._console.door.read(session, request)
            pool = await pool_of(self._console, session, request)
            done = await tried(lambda: self._done(session, form, pool, fields), *EXPLAINED)
            if isinstance(done, Refusal):
                return await self._shown(session, request, form, fields, done)
            return self._console.to(request, f"{HOME}/pools/{pool.id}")

        return answer

    async def _done(
        self, session: Session, form: Form, pool: PoolWithMembers, fields: Mapping[str, str]
    ) -> StockChange:
        asked = form.asked(pool.id, fields)
        return await once.run(self._console.run[form.operation], merchant(session), asked, fields, StockChange)

    async def _shown(
        self,
        session: Session,
        request: Request,
        form: Form,
        fields: Mapping[str, str],
        refusal: Refusal = NOT_REFUSED,
    ) -> Reply:
        # As it is now, which may not be as it was when the form was sent.
        pool = await pool_of(self._console, session, request)
        values: dict[str, Any] = {**fields, "seen": pool.on_hand}
        return self._console.page(
            session,
            request,
            f"{form.name}.html",
            refusal.status,
            name=form.name,
            pool=pool,
            seen_before=fields.get("seen"),
            values=values,
            errors={"delta": refusal.errors.get("quantity", []), **refusal.errors},
            code=refusal.code,
            labels=LABELS,
            ways=WAYS,
            targets=await self._targets(session, pool) if form.name == "transfer" else [],
            once=once.new(),
        )

    async def _targets(self, session: Session, pool: PoolWithMembers) -> Sequence[Target]:
        """The other pools that count in the same unit."""
        targets: list[Target] = []
        cursor: str | None = ""
        while cursor is not None and len(targets) < MOST_TARGETS:
            found: PoolList = await self._list(merchant(session), ListPools(limit=200, cursor=cursor))
            others = [each for each in found.pools if each.id != pool.id and each.unit == pool.unit]
            targets += [Target(each.id, each.name) for each in others]
            cursor = found.next_cursor
        return targets


def _amount(name: str, fields: Mapping[str, str], least: int = 0) -> tuple[int, Errors]:
    """A whole number that was typed, and what is wrong with it."""
    text = fields.get(name, "")
    if not text:
        return 0, {name: [said("is required")]}
    if not _AMOUNT.fullmatch(text) or not least <= int(text) <= MOST:
        wanted = said("must be a whole number from %(least)s to %(most)s", least=least, most=Grouped(MOST))
        return 0, {name: [wanted]}
    return int(text), {}
