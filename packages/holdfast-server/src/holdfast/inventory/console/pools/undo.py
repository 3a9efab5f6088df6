"""The page that undoes an entry of the history. It first shows the effect, or why it cannot be undone."""

from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pools.history_rows import ACTORS, HistoryRow, HistoryRows
from holdfast.inventory.console.pools.pool import POOL, PoolPath, pool_of
from holdfast.inventory.problems import ALREADY_REVERTED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE
from holdfast.inventory.shopify.platform import Platform
from holdfast.inventory.stock.model import Entry, RevertEntry, StockChange
from holdfast.inventory.stock.pool_page import GetEntry
from holdfast.kit.contract.command import Id, check
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, try_form

WHY_NOT = (ALREADY_REVERTED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE)


class EntryOfPool(PoolPath):
    entry_id: Id


class UndoEffect(Struct):
    """The effect of undoing on one pool."""

    name: str
    unit: str
    delta: int
    after: int


class UndoPage:
    """Answers requests for the page that undoes an entry."""

    def __init__(self, console: Console, platform: Platform) -> None:
        self._console = console
        self._rows = HistoryRows(console, platform)
        self._entry, self._revert = console.run["get_entry"], console.run["revert_entry"]

    def routes(self) -> list[Route]:
        return [self._console.route(f"{POOL}/entries/{{entry_id}}/undo", "undo", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the effect of undoing an entry, or undo it."""
        entry_id = command_in_path(EntryOfPool, request).entry_id
        fields = await self._console.signed_in.read(session, request) if request.method == "POST" else {}
        pool = await pool_of(self._console, session, request, EntryOfPool)
        refusal = NOT_REFUSED
        if request.method == "POST":
            command = check(RevertEntry, {"entry_id": entry_id, "reason": fields.get("reason") or None})
            done = await try_form(
                lambda: forms.run_once(self._revert, merchant(session), command, fields, StockChange),
                *WHY_NOT,
            )
            if not isinstance(done, FormRefusal):
                return self._console.to(request, f"{HOME}/pools/{pool.id}")
            refusal = done
        trial = RevertEntry(entry_id=entry_id, dry_run=True)
        would = await try_form(lambda: self._revert(merchant(session), trial), *WHY_NOT)
        return self._console.page(
            session,
            request,
            "pools/undo.html",
            refusal.status,
            pool=pool,
            entry_id=entry_id,
            row=await self._row(session, request, pool.id, entry_id),
            actors=ACTORS,
            effects=[] if isinstance(would, FormRefusal) else _effects(would),
            code=would.code if isinstance(would, FormRefusal) else "",
            values=fields,
            errors=refusal.errors,
            once=forms.new_token(),
        )

    async def _row(self, session: Session, request: Request, pool_id: int, entry_id: int) -> HistoryRow | None:
        """The entry as the history shows it; None if the pool has no such entry."""
        command = GetEntry(pool_id=pool_id, entry_id=entry_id)
        entry: Entry | None = await self._entry(merchant(session), command)
        return (await self._rows.rows_of(session, request, [entry]))[0] if entry else None


def _effects(change: StockChange) -> list[UndoEffect]:
    pools = {pool.id: pool for pool in change.pools}
    return [
        UndoEffect((pool := pools[entry.pool_id]).name, pool.unit, entry.delta, entry.balance_after)
        for entry in change.entries
    ]
