"""Entries of the history of stock as people read them: who did what, for which order, and whether it was undone."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.agents.access import NameKeys
from holdfast.inventory.console.frame import Console, merchant, shop_of
from holdfast.inventory.console.variants.variant_names import gids_in, names_of, with_names
from holdfast.inventory.merchants.model import EntryActor, ListActors
from holdfast.inventory.shopify.platform_client import Platform
from holdfast.inventory.stock.model import Entry, GetStockHistory, StockHistory
from holdfast.inventory.stock.operations import is_revertible
from holdfast.inventory.stock.pool_history import (
    GetUndoStatus,
    ListUnitsPerSale,
    UndoStatus,
    VariantEntry,
)
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Request

ACTORS = {
    "agent": translatable("An agent"),
    "staff": translatable("Somebody in your shop"),
    "platform": translatable("The sync with your shop"),
    "system": translatable("Holdfast"),
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
    """A variant that was sold or came back, and how often; None if that is not known."""

    name: str
    times: int | None


class HistoryRow(Struct):
    """An entry of the history, and what is told of it.

    actor    the merchant or the key that made it; None: neither did
    key      the beginning of the key; empty if it is not known
    is_held  whether it took a hold that has not ended
    """

    entry: Entry
    actor: EntryActor | None
    key: str
    is_undone: bool
    is_held: bool
    reason: str | None
    order: OrderLink | None
    sold: Sequence[SoldVariant]

    @property
    def can_be_undone(self) -> bool:
        """Whether a page offers it. The first stock of a pool is not offered: without it the pool is empty."""
        is_first_stock = self.entry.source == "create_pool"
        return self.is_held or (is_revertible(self.entry) and not self.is_undone and not is_first_stock)


class HistoryRows:
    """Reads entries of the history for pages."""

    def __init__(self, console: Console, platform: Platform) -> None:
        self._console = console
        self._platform = platform
        self._history, self._actors = console.run["get_stock_history"], console.run["list_actors"]
        self._keys = console.run["name_keys"]
        self._undo_status, self._units = console.run["get_undo_status"], console.run["list_units_per_sale"]

    async def read(
        self, session: Session, request: Request, command: GetStockHistory
    ) -> tuple[list[HistoryRow], str | None]:
        """Entries of the history, and the cursor of the next page."""
        history: StockHistory = await self._history(merchant(session), command)
        return await self.rows_of(session, request, history.entries), history.next_cursor

    async def rows_of(self, session: Session, request: Request, entries: Sequence[Entry]) -> list[HistoryRow]:
        """Entries with what people read beside them."""
        ids = [entry.id for entry in entries if entry.id]
        actors: list[EntryActor] = await self._actors(merchant(session), ListActors(entry_ids=ids))
        actors_by_entry = {actor.entry_id: actor for actor in actors}
        keys = await self._name_keys(session, {actor.key_id for actor in actors if actor.key_id})
        undo: UndoStatus = await self._undo_status(merchant(session), GetUndoStatus(entry_ids=ids))
        sales = _sales(entries)
        units = await self._units_per_sale(session, sales)
        order_reasons = [entry.reason or "" for entry in entries if entry.source == ORDERS]
        gids = gids_in(order_reasons) | {sale.variant_gid for sale in sales}
        names = await names_of(self._console, session, request, gids)

        def row(entry: Entry) -> HistoryRow:
            order, reason = self._order_and_reason(session, entry, names)
            sold = [
                SoldVariant(names[sale.variant_gid], _times(sale, units.get(sale)))
                for sale in sales
                if sale.entry_id == entry.id
            ]
            # The sentence about the order says the same as its reason, in the language of the page.
            is_redundant = bool(_ORDER_REASON.fullmatch(entry.reason or "") and order and sold) and all(
                variant.times for variant in sold
            )
            return HistoryRow(
                entry,
                actor := actors_by_entry.get(entry.id or 0),
                keys.get(actor.key_id, "") if actor and actor.key_id else "",
                entry.id in undo.reverted_ids,
                entry.id in undo.held_ids,
                None if is_redundant else reason,
                order,
                sold,
            )

        return [row(entry) for entry in entries]

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


def _sales(entries: Sequence[Entry]) -> list[VariantEntry]:
    """The variants of sales, and of what came back from them. The reason of an entry that has both says it all."""
    return [
        VariantEntry(entry.id or 0, entry.pool_id, gid, abs(units), entry.created_at)
        for entry in entries
        if entry.kind in {"sale", "cancel"}
        and entry.by_variant
        and all((units > 0) == (entry.kind == "sale") for units in entry.by_variant.values())
        for gid, units in entry.by_variant.items()
    ]


def _times(sale: VariantEntry, units_per_sale: int | None) -> int | None:
    """How often a variant was sold; None if that is not known."""
    return sale.units // units_per_sale if units_per_sale and sale.units % units_per_sale == 0 else None
