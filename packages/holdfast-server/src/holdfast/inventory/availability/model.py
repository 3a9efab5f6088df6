"""Availability: how many of each variant can be sold, and why not more."""

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from holdfast.inventory.cursor import CursorPage
from holdfast.inventory.stock.model import PoolId, Quantity, VariantGid
from holdfast.kit.contract.command import Command, rule


class GetAvailability(Command):
    variant_gids: (
        Annotated[list[VariantGid], Meta(min_length=1, max_length=250, description="These variants.")] | None
    ) = None
    pool_id: Annotated[PoolId | None, Meta(description="Every variant that draws on this pool.")] = None

    @rule("variant_gids", "pool_id")
    def _one_of_them(self) -> str | None:
        neither_or_both = (self.variant_gids is None) == (self.pool_id is None)
        return "name either variant_gids or pool_id" if neither_or_both else None


class ExplainAvailability(Command):
    variant_gid: VariantGid


class ListLowStock(CursorPage):
    threshold: Annotated[
        Quantity | None, Meta(description="At or below this, instead of each pool's own low_stock_at.")
    ] = None
    days_of_cover: (
        Annotated[
            int,
            Meta(ge=1, le=365, description="Also what lasts no longer than this many days at the pace of the last 28."),
        ]
        | None
    ) = None


class Availability(Struct):
    """How many of each variant can be sold."""

    shared_inventory_id: int
    version: Annotated[int, Meta(description="Grows with every change of the shop.")]
    variants: Annotated[
        dict[str, int], Meta(description="By global id. What is not linked, or not active, is left out.")
    ]
    limiting_pool: Annotated[dict[str, int], Meta(description="The pool that allows no more, by variant.")]


class Limit(Struct):
    """What one pool allows of a variant."""

    pool_id: int
    name: str
    unit: str
    status: str
    on_hand: int
    held: int
    buffer: int
    units_per_sale: int
    allows: int
    formula: Annotated[str, Meta(description="Such as floor(max(0, 44 - 0 - 0) / 6) = 7.")]
    is_limiting: bool


class Explanation(Struct):
    """Why just so many of a variant can be sold."""

    variant_gid: str
    effective: Annotated[int | None, Meta(description="null while one of its pools is not active.")]
    explanation: Annotated[str, Meta(description="The same in a sentence.")]
    pools: list[Limit]


class LowStock(Struct):
    """A pool that runs low."""

    pool_id: int
    name: str
    unit: str
    available: int
    low_stock_at: int | None
    taken_per_day: Annotated[
        float, Meta(description="Taken by sales and adjustments, less what came back: average of the last 28 days.")
    ]
    days_of_cover: Annotated[
        float | None, Meta(description="How long it lasts at that pace; null while none is taken.")
    ]


class LowStockList(Struct):
    """Pools that run low, by id."""

    pools: list[LowStock]
    next_cursor: Annotated[str | None, Meta(description="For the next page; null on the last.")]


class AvailabilityDelta(NamedTuple):
    """What changed of a shop since a version."""

    version: int
    variants: dict[str, int | None]
    pools: dict[int, str]
    """Name and status by id, as one text."""
