"""The page of one pool: what it has, what can be sold of it, how its stock went, and who changed it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import Availability, GetAvailability
from holdfast.inventory.console import stock_line
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.naming import gids_in, names_of, with_names
from holdfast.inventory.merchants.model import Actor, ListActors
from holdfast.inventory.pools.model import GetPool, PoolWithMembers
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import Entry, GetStockHistory, PoolId, StockHistory
from holdfast.inventory.stock.operations import REVERTIBLE
from holdfast.inventory.stock.seen import ListUndone, Look, LookAtPool
from holdfast.kit.command import Command, check
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.pages.own import named
from holdfast.kit.said import marked

POOL = f"{HOME}/pools/{{pool_id}}"

NEWEST = 10
"""Entries of the history on the page of a pool; the rest are on pages of their own."""

SHOWN = 50

KINDS = {
    "sale": marked("sold"),
    "cancel": marked("came back from an order"),
    "restock": marked("goods came in"),
    "set": marked("counted"),
    "adjust": marked("corrected"),
    "transfer": marked("moved between pools"),
    "hold": marked("kept for somebody"),
    "release": marked("no longer kept"),
    "external_edit": marked("changed at the platform"),
    "reconcile": marked("made equal to the platform"),
    "import": marked("imported"),
    "revert": marked("undone"),
}
"""What an entry of the history did, in words."""

ACTORS = {
    "agent": marked("an agent"),
    "staff": marked("somebody of the shop"),
    "platform": marked("the platform"),
    "system": marked("this service"),
}

SOURCES = {
    "webhook": marked("Orders"),
    "record_sale": marked("Recorded sales"),
    "adjust_pool_quantity": marked("Corrections"),
    "bulk_adjust": marked("Corrections of many pools"),
    "set_pool_quantity": marked("Counts"),
    "transfer_quantity": marked("Transfers to other pools"),
    "import_csv": marked("Spreadsheets"),
    "revert_entry": marked("Changes that were undone"),
    "inventory_levels/update": marked("Changes at the platform"),
}
"""What drew on a pool, in words; any other is shown by its name."""


class Line(Struct):
    """An entry of the history, who made it, whether it can be undone, and why it was made."""

    entry: Entry
    actor: Actor | None
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
        asked = LookAtPool(pool_id=named(OfPool, request).pool_id)
        look: Look = await self._look(merchant(session), asked)
        pool = await pool_of(self._console, session, request)
        lines, older = await self._lines(session, request, {"pool_id": pool.id, "limit": NEWEST})
        return self._console.page(
            session,
            request,
            "pool.html",
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
        lines, older = await self._lines(session, request, {"pool_id": pool.id, "limit": SHOWN, "cursor": after})
        return self._console.page(
            session, request, "pool_history.html", pool=pool, lines=lines, older=older, kinds=KINDS, actors=ACTORS
        )

    async def _lines(
        self, session: Session, request: Request, asked: Mapping[str, Any]
    ) -> tuple[list[Line], str | None]:
        """Entries of the history, and the cursor of the next page."""
        found: StockHistory = await self._history(merchant(session), check(GetStockHistory, asked))
        ids = [each.id for each in found.entries if each.id]
        actors: list[Actor] = await self._actors(merchant(session), ListActors(entry_ids=ids))
        who = {each.entry_id: each for each in actors}
        undone: list[int] = await self._undone(merchant(session), ListUndone(entry_ids=ids))
        reasons = await self._reasons(session, request, found.entries)
        lines = [
            Line(each, who.get(each.id or 0), each.id in undone, reason)
            for each, reason in zip(found.entries, reasons, strict=True)
        ]
        return lines, found.next_cursor

    async def _reasons(self, session: Session, request: Request, entries: Sequence[Entry]) -> Sequence[str | None]:
        """Why entries were made. In what this service says of orders, variants have their names."""
        own = [each.reason or "" for each in entries if each.source == "webhook"]
        names = await names_of(self._console, session, request, gids_in(own))
        return [
            with_names(each.reason, names) if each.source == "webhook" and each.reason else each.reason
            for each in entries
        ]

    async def _limiting(self, session: Session, pool: PoolWithMembers) -> Mapping[str, int]:
        """The pool that allows no more, by variant; a kit may be limited by another pool than this one."""
        if pool.status == "archived":
            return {}
        found: Availability = await self._available(merchant(session), GetAvailability(pool_id=pool.id))
        return found.limiting_pool


def gids_of(pool: PoolWithMembers, look: Look) -> set[str]:
    """The variants that the page of a pool names: those that draw on it, and those that did."""
    return {each.variant_gid for each in pool.members} | {each.name for each in look.by_variant if each.name}


class OfPool(Command):
    """What the path of a page about a pool names."""

    pool_id: PoolId


async def pool_of(console: Console, session: Session, request: Request, kind: type[OfPool] = OfPool) -> PoolWithMembers:
    """The pool in the path of a request. Raises `not_found`.

    kind    what the path names
    """
    asked = GetPool(pool_id=named(kind, request).pool_id)
    return await console.run["get_pool"](merchant(session), asked)
