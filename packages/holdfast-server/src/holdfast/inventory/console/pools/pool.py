"""The page of one pool: its stock, what can be sold of it, its stock over time, and its history as people read it.

The history says who did what, for which variants or order, and whether it was undone.
"""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.agents.access import NameKeys
from holdfast.inventory.availability.model import Availability, GetAvailability
from holdfast.inventory.console.frame import HOME, Console, merchant, shop_of
from holdfast.inventory.console.variants.variant_names import gids_in, names_of, with_names
from holdfast.inventory.merchants.model import EntryActor, ListActors
from holdfast.inventory.pools.model import GetPool, PoolWithMembers
from holdfast.inventory.shopify.platform import Platform
from holdfast.inventory.site import SITE
from holdfast.inventory.stock.model import Entry, EntryKind, GetStockHistory, PoolId, StockHistory
from holdfast.inventory.stock.operations import REVERTIBLE
from holdfast.inventory.stock.pool_page import (
    GetPoolHistory,
    ListRevertedEntries,
    ListUnitsPerSale,
    PoolHistory,
    VariantEntry,
)
from holdfast.kit.contract.command import Command, check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.chart import draw_steps
from holdfast.kit.pages.forms import command_in_path
from holdfast.kit.pages.language import language_of

ACTORS = {
    "agent": translatable("An agent"),
    "staff": translatable("Somebody of the shop"),
    "platform": translatable("The sync from the platform"),
    "system": translatable("The operator of this service"),
}
"""The words for the actors of entries, as the first words of a sentence."""

ORDERS = "webhook"
"""The source of the entries of orders."""

_ORDER_GID = re.compile(r"gid://[A-Za-z0-9_-]+/Order/([0-9]{1,20})")
_ORDER_REASON = re.compile(r"Order (?P<name>.{1,100}?): (?P<rest>.*)", re.DOTALL)


class OrderLink(NamedTuple):
    """The name of an order, and its address in the admin of the shop; empty if its number is not known."""

    name: str
    address: str


class SoldVariant(NamedTuple):
    """A variant that a sale took, and how often; None if that is not known."""

    name: str
    times: int | None


class HistoryRow(Struct):
    """An entry of the history, and what is told of it.

    actor    the merchant or the key that made it; None: neither did
    key      the beginning of the key; empty if it is not known
    """

    entry: Entry
    actor: EntryActor | None
    key: str
    is_undone: bool
    reason: str | None
    order: OrderLink | None
    sold: Sequence[SoldVariant]

    @property
    def can_be_undone(self) -> bool:
        return self.entry.kind in REVERTIBLE and not self.is_undone


class HistoryRows:
    """Reads entries of the history for pages."""

    def __init__(self, console: Console, platform: Platform) -> None:
        self._console = console
        self._platform = platform
        self._history, self._actors = console.run["get_stock_history"], console.run["list_actors"]
        self._keys = console.run["name_keys"]
        self._undone, self._units = console.run["list_undone"], console.run["list_units_per_sale"]

    async def read(
        self, session: Session, request: Request, command: GetStockHistory
    ) -> tuple[list[HistoryRow], str | None]:
        """Entries of the history, and the cursor of the next page."""
        history: StockHistory = await self._history(merchant(session), command)
        ids = [entry.id for entry in history.entries if entry.id]
        actors: list[EntryActor] = await self._actors(merchant(session), ListActors(entry_ids=ids))
        actors_by_entry = {actor.entry_id: actor for actor in actors}
        keys = await self._name_keys(session, {actor.key_id for actor in actors if actor.key_id})
        undone: list[int] = await self._undone(merchant(session), ListRevertedEntries(entry_ids=ids))
        sales = _direct_sales(history.entries)
        units = await self._units_per_sale(session, sales)
        order_reasons = [entry.reason or "" for entry in history.entries if entry.source == ORDERS]
        gids = gids_in(order_reasons) | {sale.variant_gid for sale in sales}
        names = await names_of(self._console, session, request, gids)

        def row(entry: Entry) -> HistoryRow:
            order, reason = self._order_and_reason(session, entry, names)
            return HistoryRow(
                entry,
                actor := actors_by_entry.get(entry.id or 0),
                keys.get(actor.key_id, "") if actor and actor.key_id else "",
                entry.id in undone,
                reason,
                order,
                [
                    SoldVariant(names[sale.variant_gid], _times(sale, units.get(sale)))
                    for sale in sales
                    if sale.entry_id == entry.id
                ],
            )

        return [row(entry) for entry in history.entries], history.next_cursor

    async def _name_keys(self, session: Session, ids: Collection[int]) -> Mapping[int, str]:
        """The beginnings of keys, by their ids."""
        return await self._keys(merchant(session), NameKeys(key_ids=sorted(ids))) if ids else {}

    async def _units_per_sale(self, session: Session, sales: Sequence[VariantEntry]) -> Mapping[VariantEntry, int]:
        """The units that one sale of each variant took when the entry was made, as far as they are known."""
        if not sales:
            return {}
        units: Sequence[int | None] = await self._units(merchant(session), ListUnitsPerSale(entries=sales))
        return {sale: number for sale, number in zip(sales, units, strict=True) if number}

    def _order_and_reason(
        self, session: Session, entry: Entry, names: Mapping[str, str]
    ) -> tuple[OrderLink | None, str | None]:
        """The order of an entry, if an order made it, and the reason without the name of the order.

        Variants have their names in the reasons that this service writes for orders.
        """
        if entry.source != ORDERS or not entry.reason:
            return None, entry.reason
        parts = _ORDER_REASON.fullmatch(entry.reason)
        number = _ORDER_GID.fullmatch(entry.source_ref or "")
        shop = shop_of(session)
        address = self._platform.at(shop, f"/admin/orders/{number[1]}") if number and shop else ""
        name = parts["name"] if parts else f"#{number[1]}" if number else ""
        return OrderLink(name, address) if name else None, with_names(parts["rest"] if parts else entry.reason, names)


def _direct_sales(entries: Sequence[Entry]) -> list[VariantEntry]:
    """The variants of sales that no order made. The reason of an order has its variants."""
    return [
        VariantEntry(entry.id or 0, entry.pool_id, gid, units, entry.created_at)
        for entry in entries
        if entry.kind == "sale" and entry.source != ORDERS
        for gid, units in (entry.by_variant or {}).items()
    ]


def _times(sale: VariantEntry, units_per_sale: int | None) -> int | None:
    """How often a variant was sold; None if that is not known."""
    return sale.units // units_per_sale if units_per_sale and sale.units % units_per_sale == 0 else None


POOL = f"{HOME}/pools/{{pool_id}}"

MAX_NEWEST_ENTRIES = 10
"""The most entries of the history on the page of a pool; the rest are on pages of their own."""

PAGE_SIZE = 50

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

CHART_KINDS = {
    "sale": ("circle", translatable("Sales")),
    "count": ("square", translatable("Counts")),
    "correction": ("triangle", translatable("Corrections and others")),
}
"""The marks of changes in the chart, with their names."""

KIND_IN_CHART: Mapping[EntryKind | None, str] = {
    "sale": "sale",
    "cancel": "sale",
    "set": "count",
    "import": "count",
    **dict.fromkeys(("adjust", "restock", "transfer", "external_edit", "reconcile", "revert"), "correction"),
}
"""The kind of mark for each kind of entry that changes what is on hand."""


HISTORY_FILTERS = {
    "": translatable("Everything"),
    "sales": translatable("Sales"),
    "counts": translatable("Counts"),
    "corrections": translatable("Corrections"),
    "transfers": translatable("Transfers"),
    "holds": translatable("Holds"),
    "platform": translatable("Changes at the platform"),
}
"""The filters of the history with their names, by the value of the parameter `kind`."""

KINDS_OF_FILTER: Mapping[str, Sequence[EntryKind]] = {
    "sales": ("sale", "cancel"),
    "counts": ("set", "import"),
    "corrections": ("adjust", "restock", "revert"),
    "transfers": ("transfer",),
    "holds": ("hold", "release"),
    "platform": ("external_edit", "reconcile"),
}
"""The kinds of entries that each filter shows."""


class PoolPage:
    """Answers requests for the page of a pool, and for its history."""

    def __init__(self, console: Console, platform: Platform) -> None:
        self._console = console
        self._get_history, self._get_availability = console.run["get_pool_history"], console.run["get_availability"]
        self._rows = HistoryRows(console, platform)

    def routes(self) -> list[Route]:
        return [
            *SITE.assets("live.js", "chart.js"),
            self._console.route(POOL, "pool", self.show),
            self._console.route(f"{POOL}/history", "pool_history", self.history),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show a pool."""
        # Read at the same time: under overload each look-up takes turns of the event loop.
        history: PoolHistory
        history, pool = await asyncio.gather(
            self._get_history(merchant(session), GetPoolHistory(pool_id=command_in_path(PoolPath, request).pool_id)),
            pool_of(self._console, session, request),
        )
        kind = filter_of(request)
        (lines, older), names, limiting = await asyncio.gather(
            self._rows.read(session, request, history_command(pool, kind, limit=MAX_NEWEST_ENTRIES)),
            names_of(self._console, session, request, gids_of(pool, history)),
            self._limiting(session, pool),
        )
        texts = SITE.texts(language_of(request))
        return self._console.page(
            session,
            request,
            "pools/pool.html",
            pool=pool,
            since=history.moments[0].at,
            drawn=draw_steps(
                [(moment.at, moment.on_hand) for moment in history.moments],
                history.moments[-1].at,
                [KIND_IN_CHART.get(moment.kind, "") for moment in history.moments],
            ),
            kinds={kind: (shape, texts.gettext(name)) for kind, (shape, name) in CHART_KINDS.items()},
            most_on_hand=max(moment.on_hand for moment in history.moments),
            by_variant=history.by_variant,
            by_source=history.by_source,
            names=names,
            sources=SOURCES,
            limiting=limiting,
            lines=lines,
            older=older,
            actors=ACTORS,
            kind=kind,
            filters=HISTORY_FILTERS,
            scripts=["live.js", "chart.js"],
        )

    async def history(self, session: Session, request: Request) -> Reply:
        """Show the history of a pool, the newest entries first."""
        pool = await pool_of(self._console, session, request)
        kind = filter_of(request)
        command = history_command(pool, kind, PAGE_SIZE, read_query(request.query).get("cursor") or None)
        lines, older = await self._rows.read(session, request, command)
        return self._console.page(
            session,
            request,
            "pools/pool_history.html",
            pool=pool,
            lines=lines,
            older=older,
            actors=ACTORS,
            kind=kind,
            filters=HISTORY_FILTERS,
            scripts=["live.js"],
        )

    async def _limiting(self, session: Session, pool: PoolWithMembers) -> Mapping[str, int]:
        """The limiting pool of each variant; a kit may be limited by another pool than this one."""
        if pool.status == "archived":
            return {}
        availability: Availability = await self._get_availability(merchant(session), GetAvailability(pool_id=pool.id))
        return availability.limiting_pool


def filter_of(request: Request) -> str:
    """The filter of the history that the address names; empty if it names none."""
    kind = read_query(request.query).get("kind", "")
    return kind if kind in HISTORY_FILTERS else ""


def history_command(
    pool: PoolWithMembers, history_filter: str, limit: int, cursor: str | None = None
) -> GetStockHistory:
    """The command for a page of the history. Raises `validation_failed` for a malformed cursor."""
    kinds = KINDS_OF_FILTER.get(history_filter)
    return check(GetStockHistory, {"pool_id": pool.id, "kinds": kinds, "limit": limit, "cursor": cursor})


def gids_of(pool: PoolWithMembers, history: PoolHistory) -> set[str]:
    """The variants that the page of a pool names: those that draw on it, and those that did."""
    return {member.variant_gid for member in pool.members} | {
        member.name for member in history.by_variant if member.name
    }


class PoolPath(Command):
    """The parameters in the path of a page about a pool."""

    pool_id: PoolId


async def pool_of(
    console: Console, session: Session, request: Request, kind: type[PoolPath] = PoolPath
) -> PoolWithMembers:
    """The pool in the path of a request. Raises `not_found`.

    kind    the parameters of the path
    """
    command = GetPool(pool_id=command_in_path(kind, request).pool_id)
    return await console.run["get_pool"](merchant(session), command)
