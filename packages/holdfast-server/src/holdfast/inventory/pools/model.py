"""Pools: one physical stock each, and the variants that draw on it."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.inventory.cursor import CursorPage
from holdfast.inventory.stock.model import (
    MAX_QUANTITY,
    ExpectedVersion,
    Filled,
    PoolId,
    Quantity,
    VariantGid,
    Write,
)
from holdfast.kit.contract.command import Command, Repeatable, Timestamp, rule
from holdfast.kit.contract.messages import message

OneLineText = Annotated[
    str,
    Meta(
        min_length=1,
        pattern=r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$(?!\n)",
        extra={"noun": message("one line of text without spaces at its ends")},
    ),
]
"""So written that two names that look the same are the same."""

Policy = Annotated[
    Literal["adopt", "enforce", "flag"],
    Meta(description="What becomes of quantities that others set at the platform."),
]

PoolStatus = Literal["active", "paused", "archived"]

Name = Annotated[
    OneLineText,
    Meta(
        max_length=100,
        description="One line, unique in the shop.",
        examples=["Honey jars"],
    ),
]
Unit = Annotated[
    OneLineText,
    Meta(
        max_length=20,
        description="The smallest unit it is counted in, such as g.",
        examples=["units"],
    ),
]
Label = Annotated[
    OneLineText,
    Meta(
        max_length=200,
        description="One line, to find it by.",
    ),
]
Buffer = Annotated[int, Meta(ge=0, le=MAX_QUANTITY, description="Kept back: only a correction may use it.")]
LowStockAt = Annotated[int, Meta(ge=0, le=MAX_QUANTITY, description="Low when available is at or below this.")]
AllowNegative = Annotated[bool, Meta(description="All but holds may take more than there is.")]
UnitsPerSale = Annotated[int, Meta(ge=1, le=10**9, description="What one sale takes from the pool.", examples=[6])]


class MemberFields(Struct, forbid_unknown_fields=True):
    """A variant to be linked."""

    variant_gid: VariantGid
    units_per_sale: UnitsPerSale
    sku: Label | None = None
    title: Label | None = None


Members = Annotated[list[MemberFields], Meta(max_length=250, description="Variants that draw on the pool.")]


class ListPools(CursorPage):
    """All options are optional: `{}` lists the first page."""

    status: Annotated[PoolStatus | None, Meta(description="Without it: all but archived pools.")] = None
    query: Annotated[Filled | None, Meta(description="Only pools whose name contains this.")] = None
    low_stock_only: Annotated[bool, Meta(description="Only low pools.")] = False


class GetPool(Command):
    pool_id: PoolId
    include_members: Annotated[bool, Meta(description="With the variants.")] = True


class CreatePool(Write):
    name: Name
    unit: Unit = "units"
    quantity: Annotated[Quantity, Meta(description="What is there now; needs write_inventory when above 0.")] = 0
    buffer: Buffer = 0
    low_stock_at: LowStockAt | None = None
    allow_negative: AllowNegative = False
    members: Members = []  # noqa: RUF012 - msgspec copies it


class ChangePool(Repeatable, kw_only=True):
    """Base of the commands that change a pool's configuration."""

    pool_id: PoolId
    expected_version: ExpectedVersion | None = None


class UpdatePool(ChangePool, kw_only=True):
    name: Name | UnsetType = UNSET
    unit: Unit | UnsetType = UNSET
    buffer: Buffer | UnsetType = UNSET
    low_stock_at: LowStockAt | UnsetType | None = UNSET
    allow_negative: AllowNegative | UnsetType = UNSET
    policy: Policy | UnsetType = UNSET


class PausePool(ChangePool):
    """Nothing but the pool."""


class ResumePool(ChangePool):
    """Nothing but the pool."""


class ArchivePool(ChangePool, kw_only=True):
    release_variants: Annotated[bool, Meta(description="Unlink its variants as well.")] = False


class RestorePool(ChangePool):
    """Nothing but the pool."""


class LinkVariants(ChangePool, kw_only=True):
    members: Annotated[Members, Meta(min_length=1)]
    initial: Annotated[
        Literal["keep_pool", "sum_from_platform"],
        Meta(description="sum_from_platform adds what the platform has of them; needs write_inventory."),
    ] = "keep_pool"


class UpdateMember(ChangePool, kw_only=True):
    variant_gid: VariantGid
    units_per_sale: UnitsPerSale


class UnlinkVariants(ChangePool, kw_only=True):
    variant_gids: Annotated[list[VariantGid], Meta(min_length=1, max_length=250, description="Variants to unlink.")]


class FindVariant(Command):
    """Name one of the three."""

    gid: VariantGid | None = None
    sku: Annotated[Filled | None, Meta(description="The whole SKU.")] = None
    text: Annotated[Filled | None, Meta(description="Part of a title or SKU, as linked or at the platform.")] = None

    @rule("gid", "sku", "text")
    def _names_one_key(self) -> str | None:
        count = sum(key is not None for key in (self.gid, self.sku, self.text))
        return None if count == 1 else "name one of gid, sku and text"


class FindSourcePools(Command):
    """Find the pools that variants draw on."""

    gids: Annotated[list[str], Meta(max_length=200)]


class SourcePool(NamedTuple):
    """A pool that a variant draws on. `units_per_sale`: what one sale of the variant takes of it."""

    id: int
    name: str
    units_per_sale: int


class Pool(Struct):
    """A pool: one physical stock."""

    id: int
    name: str
    unit: Annotated[str, Meta(description="What it is counted in; every quantity is a whole number of these.")]
    on_hand: Annotated[int, Meta(description="The sum of its ledger.")]
    held: Annotated[int, Meta(description="Kept for holds.")]
    buffer: int
    available: Annotated[int, Meta(description="max(0, on_hand - held - buffer)")]
    low_stock_at: int | None
    low_stock: bool
    allow_negative: bool
    policy: Policy
    status: PoolStatus
    member_count: int
    version: Annotated[
        int | None, Meta(description="For expected_version; grows with every change of the pool. null in a dry run.")
    ]
    inserted_at: Timestamp


class Member(Struct):
    """A variant that draws on a pool."""

    variant_gid: str
    units_per_sale: int
    sku: str | None
    title: str | None
    effective: Annotated[
        int | None, Meta(description="How many can be sold now, over all its pools; null while one is not active.")
    ]


class PoolWithMembers(Pool, kw_only=True):
    """A pool, with the variants that draw on it."""

    members: list[Member]


class PoolsByName(NamedTuple):
    """Pools by the keys of their names."""

    keys: Mapping[str, str]
    pools: Mapping[str, Pool]

    def pool(self, name: str) -> Pool | None:
        return self.pools.get(self.keys[name])


class PoolList(Struct):
    """Pools of the shop."""

    pools: list[Pool]
    next_cursor: Annotated[str | None, Meta(description="For the next page; null on the last.")]


class EffectiveChange(Struct):
    """A variant before and after; null where a storefront is not told of it."""

    variant_gid: str
    before: int | None
    after: int | None


class PoolChange(Struct):
    """What a change of configuration did, or in a dry run would do."""

    version: Annotated[int | None, Meta(description="Version of the shop with this change; null in a dry run.")]
    dry_run: bool
    pool: PoolWithMembers
    affected: list[EffectiveChange]


class VariantPool(Struct):
    """A pool a variant draws on."""

    pool_id: int
    name: str
    unit: str
    units_per_sale: int


class Variant(Struct):
    """A variant that is linked, or was."""

    gid: str
    sku: str | None
    title: str | None
    effective: int | None
    pools: list[VariantPool]


class VariantList(Struct):
    """Variants found: at most 50, those that fit best first."""

    variants: list[Variant]
