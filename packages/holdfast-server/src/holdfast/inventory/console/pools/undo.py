"""The page that undoes an entry of the history. It first shows the effect, or why it cannot be undone."""

from collections.abc import Mapping

from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pools.history_rows import ACTORS, HistoryRows
from holdfast.inventory.console.pools.pool import POOL, PoolPath, pool_of
from holdfast.inventory.problems import ALREADY_REVERTED, HOLD_ENDED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE
from holdfast.inventory.shopify.platform import Platform
from holdfast.inventory.stock.model import Entry, ReleaseHold, RevertEntry, StockChange
from holdfast.inventory.stock.pool_page import GetEntry
from holdfast.kit.contract.command import Id, check
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, try_form

WHY_NOT = (ALREADY_REVERTED, HOLD_ENDED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE)


class EntryOfPool(PoolPath):
    entry_id: Id


class UndoEffect(Struct):
    """The effect of undoing on one pool.

    is_hold    whether it changes what is held, not what is on hand
    """

    name: str
    unit: str
    delta: int
    after: int
    is_hold: bool


class UndoPage:
    """Answers requests for the page that undoes an entry."""

    def __init__(self, console: Console, platform: Platform) -> None:
        self._console = console
        self._rows = HistoryRows(console, platform)
        self._entry, self._revert = console.run["get_entry"], console.run["revert_entry"]
        self._release = console.run["release_hold"]

    def routes(self) -> list[Route]:
        return [self._console.route(f"{POOL}/entries/{{entry_id}}/undo", "undo", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the effect of undoing an entry, or undo it."""
        entry_id = command_in_path(EntryOfPool, request).entry_id
        fields = await self._console.signed_in.read(session, request) if request.method == "POST" else {}
        pool = await pool_of(self._console, session, request, EntryOfPool)
        entry: Entry | None = await self._entry(merchant(session), GetEntry(pool_id=pool.id, entry_id=entry_id))
        refusal = NOT_REFUSED
        if request.method == "POST":
            done = await try_form(lambda: self._undo(session, entry_id, entry, fields), *WHY_NOT)
            if not isinstance(done, FormRefusal):
                return self._console.to(request, f"{HOME}/pools/{pool.id}")
            refusal = done
        would = await try_form(lambda: self._undo(session, entry_id, entry), *WHY_NOT)
        return self._console.page(
            session,
            request,
            "pools/undo.html",
            refusal.status,
            pool=pool,
            entry_id=entry_id,
            row=(await self._rows.rows_of(session, request, [entry]))[0] if entry else None,
            actors=ACTORS,
            effects=[] if isinstance(would, FormRefusal) else _effects(would),
            code=would.code if isinstance(would, FormRefusal) else "",
            values=fields,
            errors=refusal.errors,
            once=forms.new_token(),
        )

    async def _undo(
        self, session: Session, entry_id: int, entry: Entry | None, fields: Mapping[str, str] | None = None
    ) -> StockChange:
        """Undo an entry: a hold by its release, any other by its opposite. `fields`: of the form; None: only try it."""
        is_hold = entry is not None and entry.kind == "hold" and entry.hold_id is not None
        target = {"hold_id": entry.hold_id} if entry and is_hold else {"entry_id": entry_id}
        reason = fields and fields.get("reason")
        command = check(
            ReleaseHold if is_hold else RevertEntry,
            {**target, "reason": reason or None, "dry_run": fields is None},
        )
        run = self._release if is_hold else self._revert
        if fields is None:
            return await run(merchant(session), command)
        return await forms.run_once(run, merchant(session), command, fields, StockChange)


def _effects(change: StockChange) -> list[UndoEffect]:
    pools = {pool.id: pool for pool in change.pools}
    return [
        UndoEffect((pool := pools[entry.pool_id]).name, pool.unit, entry.held_delta, entry.held_after, True)
        if entry.kind == "release"
        else UndoEffect((pool := pools[entry.pool_id]).name, pool.unit, entry.delta, entry.balance_after, False)
        for entry in change.entries
    ]
