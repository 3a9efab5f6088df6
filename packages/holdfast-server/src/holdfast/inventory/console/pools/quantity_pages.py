"""The forms that change the stock of a pool: a correction, a count, and a transfer to another pool. Each says below its
number what it would do, as soon as a number is typed or was refused.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.number_fields import NumberField
from holdfast.inventory.console.pools.pool_paths import POOL, pool_of
from holdfast.inventory.console.pools.stock_preview import preview_of
from holdfast.inventory.installs.operations import GetConnection
from holdfast.inventory.pools.model import ListPools, PoolList, PoolWithMembers
from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import (
    MAX_QUANTITY,
    AdjustPoolQuantity,
    SetPoolQuantity,
    StockChange,
    TransferQuantity,
    Write,
)
from holdfast.kit.contract.command import Errors, check, with_integers
from holdfast.kit.contract.messages import message, translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

FORM_PROBLEMS = (NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE)
"""Problems that the form explains."""

WAYS = {
    "restock": translatable("Goods came in"),
    "take": translatable("Goods went out: broken, lost or used"),
    "add": translatable("Goods were found, or counted too low"),
}
"""What can have happened to the stock, by the value of the field `way`."""

LABELS = {
    "delta": translatable("How many?"),
    "way": translatable("What happened?"),
    "quantity": translatable("How many"),
    "to_pool_id": translatable("To which pool"),
    "reason": translatable("Reason (optional, shown in the history)"),
}

MAX_TARGETS = 1000
"""About how many pools a transfer form offers; agents can name any."""

CommandOfForm = Callable[[int, Mapping[str, str]], Write]


class StockForm(NamedTuple):
    """A form that changes the stock of a pool.

    name        of its page and its template
    operation   the operation that it runs
    command_of  returns the command of the typed values and the id of the pool; raises `validation_failed`
    """

    name: str
    operation: str
    command_of: CommandOfForm


class TransferTarget(Struct):
    """A pool that can receive a transfer."""

    id: int
    name: str


def adjustment(pool_id: int, fields: Mapping[str, str]) -> Write:
    """The command of a correction by a number of units."""
    way = fields.get("way", "")
    number, unread = _amount("delta", fields, least=1)
    if way not in WAYS:
        unread["way"] = [message("Choose what happened.")]
    values = {
        "pool_id": pool_id,
        "delta": -number if way == "take" else number,
        "kind": "restock" if way == "restock" else "adjust",
        "reason": fields.get("reason") or None,
    }
    return check(AdjustPoolQuantity, values, unread=unread)


def count(pool_id: int, fields: Mapping[str, str]) -> Write:
    """The command of a count, which is valid only if nothing has changed since the form was shown."""
    number, unread = _amount("quantity", fields)
    expected = with_integers(SetPoolQuantity, {"expected_quantity": fields.get("seen", "")})
    values = {"pool_id": pool_id, "quantity": number, "reason": fields.get("reason") or None, **expected}
    return check(SetPoolQuantity, values, unread=unread)


def transfer(pool_id: int, fields: Mapping[str, str]) -> Write:
    """The command of a transfer to another pool."""
    number, unread = _amount("quantity", fields, least=1)
    to = with_integers(TransferQuantity, {"to_pool_id": fields.get("to_pool_id", "")})
    if not isinstance(to["to_pool_id"], int):
        unread["to_pool_id"] = [message("Choose a pool.")]
    values = {"from_pool_id": pool_id, "quantity": number, "reason": fields.get("reason") or None, **to}
    return check(TransferQuantity, values, unread=unread)


FORMS = (
    StockForm("adjust", "adjust_pool_quantity", adjustment),
    StockForm("count", "set_pool_quantity", count),
    StockForm("transfer", "transfer_quantity", transfer),
)


class QuantityPages:
    """Answers requests for the forms that change the stock of a pool."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list = console.run["list_pools"]
        self._is_connected = console.run["is_shop_connected"]

    def routes(self) -> list[Route]:
        return [
            *SITE.assets("form_preview.js", "console/pools/quantity_preview.js"),
            *(
                self._console.route(f"{POOL}/{form.name}", f"{form.name}_pool", self._answer(form), "POST")
                for form in FORMS
            ),
        ]

    def _answer(self, form: StockForm) -> Callable[[Session, Request], Awaitable[Reply]]:
        async def answer(session: Session, request: Request) -> Reply:
            if request.method != "POST":
                way = read_query(request.query).get("way")
                return await self._form(session, request, form, {"way": way} if way in WAYS else {})
            fields = await self._console.signed_in.read(session, request)
            if fields.get("do") == "preview":
                return await self._form(session, request, form, fields, is_preview=True)
            pool = await pool_of(self._console, session, request)
            outcome = await try_form(lambda: self._run(session, form, pool, fields), *FORM_PROBLEMS)
            if isinstance(outcome, FormRefusal):
                return await self._form(session, request, form, fields, outcome)
            return self._console.redirect(request, f"{HOME}/pools/{pool.id}")

        return answer

    async def _run(
        self, session: Session, form: StockForm, pool: PoolWithMembers, fields: Mapping[str, str]
    ) -> StockChange:
        command = form.command_of(pool.id, fields)
        return await forms.run_once(self._console.run[form.operation], merchant(session), command, fields, StockChange)

    async def _form(
        self,
        session: Session,
        request: Request,
        form: StockForm,
        fields: Mapping[str, str],
        refusal: FormRefusal = NOT_REFUSED,
        *,
        is_preview: bool = False,
    ) -> Reply:
        """The page of a form. `is_preview`: it is asked for what the typed values would do, not sent."""
        # The pool as it is now, which may differ from when the form was sent.
        pool = await pool_of(self._console, session, request)
        values: dict[str, Any] = {**fields, "seen": pool.on_hand}
        # The first page of a form has no number yet.
        trial = (
            await self._preview_change(session, form, pool, {**values, "seen": str(pool.on_hand)})
            if fields
            else NOT_REFUSED
        )
        return self._console.page(
            session,
            request,
            f"pools/{form.name}.html",
            refusal.status,
            name=form.name,
            pool=pool,
            seen_before=fields.get("seen"),
            values=values,
            errors={"delta": refusal.errors.get("quantity", []), **refusal.errors},
            preview=None if isinstance(trial, FormRefusal) else preview_of(trial, pool),
            # A missing number is said at its field, when the form is sent.
            preview_code=trial.code if isinstance(trial, FormRefusal) and not trial.errors else "",
            is_preview=is_preview,
            is_connected=await self._is_connected(merchant(session), GetConnection()),
            code=refusal.code,
            labels=LABELS,
            ways=WAYS,
            targets=await self._targets(session, pool) if form.name == "transfer" else [],
            once=forms.new_token(),
        )

    async def _preview_change(
        self, session: Session, form: StockForm, pool: PoolWithMembers, fields: Mapping[str, str]
    ) -> StockChange | FormRefusal:
        """What the typed values would do, or why they are refused."""

        async def run() -> StockChange:
            command = msgspec.structs.replace(form.command_of(pool.id, fields), dry_run=True)
            return await self._console.run[form.operation](merchant(session), command)

        return await try_form(run, *FORM_PROBLEMS)

    async def _targets(self, session: Session, pool: PoolWithMembers) -> Sequence[TransferTarget]:
        """The other pools that count in the same unit."""
        targets: list[TransferTarget] = []
        cursor: str | None = ""
        while cursor is not None and len(targets) < MAX_TARGETS:
            pool_list: PoolList = await self._list(merchant(session), ListPools(limit=200, cursor=cursor))
            others = [pool_row for pool_row in pool_list.pools if pool_row.id != pool.id and pool_row.unit == pool.unit]
            targets += [TransferTarget(target.id, target.name) for target in others]
            cursor = pool_list.next_cursor
        return targets


def _amount(name: str, fields: Mapping[str, str], least: int = 0) -> tuple[int, Errors]:
    """The typed number, and the errors of its field."""
    number = NumberField(least, MAX_QUANTITY, 6).read(fields.get(name, ""))
    return (0, {name: [number]}) if isinstance(number, str) else (number, {})
