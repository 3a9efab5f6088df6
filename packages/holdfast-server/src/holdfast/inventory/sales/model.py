"""Commands and answers of sales, recorded and simulated."""

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.inventory.stock.model import (
    AffectedVariant,
    ExpectedVersion,
    Filled,
    PoolId,
    PoolStock,
    Positive,
    VariantGid,
    Write,
)
from holdfast.kit.contract.command import Command, Id, rule


class RecordSale(Write, kw_only=True):
    quantity: Annotated[
        Positive, Meta(description="Of the variant as it is sold; with pool_id, of the pool's smallest unit.")
    ]
    variant_gid: VariantGid | None = None
    pool_id: PoolId | None = None
    hold_id: Annotated[Id | None, Meta(description="The hold that becomes this sale. It ends.")] = None
    order_reference: Annotated[
        Filled | None, Meta(description="Your name for the order; without one, the reference of the hold.")
    ] = None
    expected_version: Annotated[
        ExpectedVersion | None,
        Meta(description="Refuse any other version; of a kit, the highest of its pools."),
    ] = None

    @rule("variant_gid", "pool_id")
    def _one_of_them(self) -> str | None:
        return "name either variant_gid or pool_id" if (self.variant_gid is None) == (self.pool_id is None) else None


class Sale(Struct, forbid_unknown_fields=True):
    """A line of a sale that might be."""

    variant_gid: VariantGid
    quantity: Annotated[int, Meta(ge=1, le=10**9, description="How many of the variant.")]


class SimulateSale(Command):
    lines: Annotated[list[Sale], Meta(min_length=1, max_length=250, description="What is sold together.")]


class Shortfall(Struct):
    """What a sale would lack of a pool."""

    pool_id: int
    name: str
    unit: str
    needed: int
    available: int
    short: int


class Simulation(Struct):
    """What a sale would do. Nothing was changed."""

    possible: Annotated[bool, Meta(description="Whether every line can be served in full, all of them together.")]
    shortfalls: list[Shortfall]
    inactive_pools: Annotated[
        list[int], Meta(description="Its pools that are paused or archived: storefronts sell nothing of them.")
    ]
    pools: Annotated[list[PoolStock], Meta(description="As they would be after it.")]
    affected: Annotated[list[AffectedVariant] | None, Meta(description="null where more than 500 variants may be.")]
