"""The page that undoes an entry of the history. It says first what that would do, or why it cannot be done."""

from msgspec import Struct
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pool import POOL, OfPool, pool_of
from holdfast.inventory.problems import ALREADY_REVERTED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE
from holdfast.inventory.stock.model import RevertEntry, StockChange
from holdfast.kit.command import Id, check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages import once
from holdfast.kit.pages.own import named
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried

WHY_NOT = (ALREADY_REVERTED, NOT_ENOUGH_STOCK, NOT_REVERTIBLE, POOL_NOT_ACTIVE)


class EntryOfPool(OfPool):
    entry_id: Id


class Effect(Struct):
    """What undoing does to one pool."""

    name: str
    unit: str
    delta: int
    after: int


class UndoPage:
    """Answers requests for the page that undoes an entry."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._revert = console.run["revert_entry"]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(f"{POOL}/entries/{{entry_id}}/undo", "undo", self.answer, "POST")]

    async def answer(self, session: Session, request: Request) -> Reply:
        """Say what undoing an entry does, or undo it."""
        entry_id = named(EntryOfPool, request).entry_id
        fields = await self._console.door.read(session, request) if request.method == "POST" else {}
        pool = await pool_of(self._console, session, request, EntryOfPool)
        refusal = NOT_REFUSED
        if request.method == "POST":
            asked = check(RevertEntry, {"entry_id": entry_id, "reason": fields.get("reason") or None})
            done = await tried(lambda: once.run(self._revert, merchant(session), asked, fields, StockChange), *WHY_NOT)
            if not isinstance(done, Refusal):
                return self._console.to(request, f"{HOME}/pools/{pool.id}")
            refusal = done
        trial = RevertEntry(entry_id=entry_id, dry_run=True)
        would = await tried(lambda: self._revert(merchant(session), trial), *WHY_NOT)
        return self._console.page(
            session,
            request,
            "undo.html",
            refusal.status,
            pool=pool,
            entry_id=entry_id,
            effects=[] if isinstance(would, Refusal) else _effects(would),
            code=would.code if isinstance(would, Refusal) else "",
            values=fields,
            errors=refusal.errors,
            once=once.new(),
        )


def _effects(change: StockChange) -> list[Effect]:
    pools = {each.id: each for each in change.pools}
    return [
        Effect((pool := pools[each.pool_id]).name, pool.unit, each.delta, each.balance_after) for each in change.entries
    ]
