"""The page of one pool: its stock, what can be sold of it, its stock over time, and its history."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import Availability, GetAvailability
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.pools import stock_line
from holdfast.inventory.console.variants.variant_names import gids_in, names_of, with_names
from holdfast.inventory.merchants.model import EntryActor, ListActors
from holdfast.inventory.pools.model import GetPool, PoolWithMembers
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import Entry, GetStockHistory, PoolId, StockHistory
from holdfast.inventory.stock.operations import REVERTIBLE
from holdfast.inventory.stock.pool_page import GetPoolHistory, ListRevertedEntries, PoolHistory
from holdfast.kit.contract.command import Command, check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.pages.signed_in_pages import command_in_path

POOL = f"{HOME}/pools/{{pool_id}}"

MAX_NEWEST_ENTRIES = 10
"""The most entries of the history on the page of a pool; the rest are on pages of their own."""

PAGE_SIZE = 50

KINDS = {
    "sale": translatable("sold"),
    "cancel": translatable("came back from an order"),
    "restock": translatable("goods came in"),
    "set": translatable("counted"),
    "adjust": translatable("corrected"),
    "transfer": translatable("moved between pools"),
    "hold": translatable("kept for somebody"),
    "release": translatable("no longer kept"),
    "external_edit": translatable("changed at the platform"),
    "reconcile": translatable("made equal to the platform"),
    "import": translatable("imported"),
    "revert": translatable("undone"),
}
"""The words for the kinds of entries of the history."""

ACTORS = {
    "agent": translatable("an agent"),
    "staff": translatable("somebody of the shop"),
    "platform": translatable("the platform"),
    "system": translatable("this service"),
}

SOURCES = {
    "webhook": translatable("Orders"),
    "record_sale": translatable("Recorded sales"),
    "adjust_pool_quantity": translatable("Corrections"),
    "bulk_adjust": translatable("Corrections of many pools"),
    "set_pool_quantity": translatable("Counts"),
    "transfer_quantity": translatable("Transfers to other pools"),
    "import_csv": translatable("Spreadsheets"),
    "revert_entry": translatable("Changes that were undone"),
    "inventory_levels/update": translatable("Changes at the platform"),
}
"""The words for the sources of what was drawn; any other source is shown by its name."""


class HistoryRow(Struct):
    """An entry of the history, the merchant who made it, whether it was undone, and its reason."""

    entry: Entry
    actor: EntryActor | None
    is_undone: bool
    reason: str | None

    @property
    def can_be_undone(self) -> bool:
        return self.entry.kind in REVERTIBLE and not self.is_undone


class PoolPage:
    """Answers requests for the page of a pool, and for its history."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._look, self._available = console.run["look_at_pool"], console.run["get_availability"]
        self._history, self._actors = console.run["get_stock_history"], console.run["list_actors"]
        self._undone = console.run["list_undone"]

    def routes(self) -> list[BaseRoute]:
        return [
            *SITE.assets("live.js"),
            self._console.route(POOL, "pool", self.show),
            self._console.route(f"{POOL}/history", "pool_history", self.history),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show a pool."""
        command = GetPoolHistory(pool_id=command_in_path(PoolPath, request).pool_id)
        look: PoolHistory = await self._look(merchant(session), command)
        pool = await pool_of(self._console, session, request)
        lines, older = await self._lines(session, request, {"pool_id": pool.id, "limit": MAX_NEWEST_ENTRIES})
        return self._console.page(
            session,
            request,
            "pools/pool.html",
            pool=pool,
            line=stock_line.draw(look.moments),
            by_variant=look.by_variant,
            by_source=look.by_source,
            names=await names_of(self._console, session, request, gids_of(pool, look)),
            sources=SOURCES,
            limiting=await self._limiting(session, pool),
            lines=lines,
            older=older,
            kinds=KINDS,
            actors=ACTORS,
            scripts=["live.js"],
        )

    async def history(self, session: Session, request: Request) -> Reply:
        """Show the history of a pool, the newest entries first."""
        pool = await pool_of(self._console, session, request)
        after = read_query(request.query).get("cursor") or None
        lines, older = await self._lines(session, request, {"pool_id": pool.id, "limit": PAGE_SIZE, "cursor": after})
        return self._console.page(
            session, request, "pools/pool_history.html", pool=pool, lines=lines, older=older, kinds=KINDS, actors=ACTORS
        )

    async def _lines(
        self, session: Session, request: Request, fields: Mapping[str, Any]
    ) -> tuple[list[HistoryRow], str | None]:
        """Return entries of the history, and the cursor of the next page."""
        history: StockHistory = await self._history(merchant(session), check(GetStockHistory, fields))
        ids = [entry.id for entry in history.entries if entry.id]
        actors: list[EntryActor] = await self._actors(merchant(session), ListActors(entry_ids=ids))
        who = {actor.entry_id: actor for actor in actors}
        undone: list[int] = await self._undone(merchant(session), ListRevertedEntries(entry_ids=ids))
        reasons = await self._reasons(session, request, history.entries)
        lines = [
            HistoryRow(entry, who.get(entry.id or 0), entry.id in undone, reason)
            for entry, reason in zip(history.entries, reasons, strict=True)
        ]
        return lines, history.next_cursor

    async def _reasons(self, session: Session, request: Request, entries: Sequence[Entry]) -> Sequence[str | None]:
        """Return the reasons of entries. In those that this service writes for orders, variants have their names."""
        order_reasons = [entry.reason or "" for entry in entries if entry.source == "webhook"]
        names = await names_of(self._console, session, request, gids_in(order_reasons))
        return [
            with_names(entry.reason, names) if entry.source == "webhook" and entry.reason else entry.reason
            for entry in entries
        ]

    async def _limiting(self, session: Session, pool: PoolWithMembers) -> Mapping[str, int]:
        """Return the limiting pool of each variant; a kit may be limited by another pool than this one."""
        if pool.status == "archived":
            return {}
        availability: Availability = await self._available(merchant(session), GetAvailability(pool_id=pool.id))
        return availability.limiting_pool


def gids_of(pool: PoolWithMembers, look: PoolHistory) -> set[str]:
    """Return the variants that the page of a pool names: those that draw on it, and those that did."""
    return {member.variant_gid for member in pool.members} | {member.name for member in look.by_variant if member.name}


class PoolPath(Command):
    """The parameters in the path of a page about a pool."""

    pool_id: PoolId


async def pool_of(
    console: Console, session: Session, request: Request, kind: type[PoolPath] = PoolPath
) -> PoolWithMembers:
    """Return the pool in the path of a request. Raises `not_found`.

    kind    the parameters of the path
    """
    command = GetPool(pool_id=command_in_path(kind, request).pool_id)
    return await console.run["get_pool"](merchant(session), command)
