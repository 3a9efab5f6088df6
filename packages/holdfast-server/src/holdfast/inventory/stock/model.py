"""Commands and answers of operations on stock. The rules are in `ledger_rules.py`."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.inventory.cursor import CursorPage
from holdfast.kit.contract.command import Command, Id, Repeatable, Timestamp, rule
from holdfast.kit.contract.messages import message

MAX_QUANTITY = 10**12
"""The largest quantity in one call, in the smallest unit."""

EntryKind = Literal[
    "sale",
    "cancel",
    "restock",
    "set",
    "adjust",
    "transfer",
    "hold",
    "release",
    "external_edit",
    "reconcile",
    "import",
    "revert",
]
Actor = Literal["agent", "staff", "platform", "system"]

PoolId = Annotated[Id, Meta(description="From list_pools.", examples=[1])]
VariantGid = Annotated[
    str,
    Meta(
        pattern=r"^gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]{1,20}$(?!\n)",
        extra={"noun": message("a global id such as gid://shopify/ProductVariant/1001")},
        max_length=120,
        description="Such as gid://shopify/ProductVariant/1001.",
        examples=["gid://shopify/ProductVariant/1001"],
    ),
]
Quantity = Annotated[int, Meta(ge=0, le=MAX_QUANTITY, description="In the pool's smallest unit.", examples=[44])]
Positive = Annotated[int, Meta(ge=1, le=MAX_QUANTITY, description="In the pool's smallest unit.", examples=[6])]
Delta = Annotated[
    int,
    Meta(
        ge=-MAX_QUANTITY,
        le=MAX_QUANTITY,
        description="In the pool's smallest unit; negative takes.",
        examples=[-6],
    ),
]
Reason = Annotated[str, Meta(min_length=1, max_length=500, description="For the history.")]
ExpectedVersion = Annotated[int, Meta(ge=0, le=2**63 - 1, description="Refuse any other version.")]
ExpectedQuantity = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, description="Refuse unless on_hand is still this.")]
Filled = Annotated[str, Meta(min_length=1, max_length=200)]


class Write(Repeatable, kw_only=True):
    """Base of the commands that change stock."""

    reason: Reason | None = None


class SetPoolQuantity(Write):
    pool_id: PoolId
    quantity: Quantity
    expected_version: ExpectedVersion | None = None
    expected_quantity: ExpectedQuantity | None = None


class AdjustPoolQuantity(Write):
    pool_id: PoolId
    delta: Delta
    kind: Annotated[
        Literal["adjust", "restock"], Meta(description="`restock` for goods that came in, else `adjust`.")
    ] = "adjust"
    expected_version: ExpectedVersion | None = None
    expected_quantity: ExpectedQuantity | None = None

    @rule("delta", "kind")
    def _moves(self) -> str | None:
        if self.delta == 0:
            return "must not be 0"
        return "must be positive for a restock" if self.kind == "restock" and self.delta < 0 else None


class Adjustment(Struct, forbid_unknown_fields=True):
    """One line of a bulk adjustment."""

    pool_id: PoolId
    delta: Delta
    expected_version: ExpectedVersion | None = None
    expected_quantity: ExpectedQuantity | None = None


class BulkAdjust(Write):
    items: Annotated[
        list[Adjustment],
        Meta(min_length=1, max_length=250, description="Lines of one pool are added up."),
    ]

    @rule("items")
    def _each_moves(self) -> str | None:
        still = [index for index, item in enumerate(self.items) if item.delta == 0]
        return f"items[{still[0]}].delta must not be 0" if still else None


class TransferQuantity(Write):
    from_pool_id: PoolId
    to_pool_id: PoolId
    quantity: Positive
    expected_version: Annotated[ExpectedVersion | None, Meta(description="Of the pool taken from.")] = None
    expected_quantity: Annotated[ExpectedQuantity | None, Meta(description="Of the pool taken from.")] = None

    @rule("to_pool_id", "from_pool_id")
    def _names_two_pools(self) -> str | None:
        return "must be another pool" if self.to_pool_id == self.from_pool_id else None


class HoldQuantity(Write):
    quantity: Annotated[
        Positive, Meta(description="Of the pool's smallest unit; with variant_gid, of the variant as it is sold.")
    ]
    pool_id: PoolId | None = None
    variant_gid: VariantGid | None = None
    ttl_s: Annotated[int, Meta(ge=1, le=604_800, description="In seconds; at most a week.", examples=[900])] = 900
    reference: Annotated[Filled | None, Meta(description="What it is for, such as a cart.")] = None

    @rule("pool_id", "variant_gid")
    def _one_of_them(self) -> str | None:
        return "name either pool_id or variant_gid" if (self.pool_id is None) == (self.variant_gid is None) else None


class ListHolds(CursorPage):
    pool_id: PoolId | None = None
    reference: Annotated[Filled | None, Meta(description="Only those with this reference.")] = None


class ReleaseHold(Write):
    hold_id: Annotated[Id, Meta(description="Id of a hold, from hold_quantity.")]


class RevertEntry(Write):
    entry_id: Annotated[Id, Meta(description="Id of an entry, from get_stock_history.")]


class GetStockHistory(CursorPage):
    pool_id: PoolId | None = None
    variant_gid: VariantGid | None = None
    kinds: Annotated[list[EntryKind], Meta(max_length=12, description="Only these kinds.")] | None = None
    actor: Annotated[Actor | None, Meta(description="Only what these did.")] = None
    source_ref: Annotated[
        Filled | None, Meta(description="Only of this order (gid://shopify/Order/1), import or hold.")
    ] = None
    since: Timestamp | None = None
    until: Timestamp | None = None


class GetStockAt(Command):
    pool_id: PoolId
    at: Timestamp


RECORDED_SALE = "record_sale"
"""The source of the entries of sales that no order made."""


class Entry(Struct):
    """One line of the ledger. Lines are never changed; a mistake is corrected by another line."""

    id: Annotated[int | None, Meta(description="null in a dry run: nothing was stored.")]
    pool_id: int
    kind: EntryKind
    delta: Annotated[int, Meta(description="Change of on_hand.")]
    held_delta: Annotated[int, Meta(description="Change of held.")]
    balance_after: Annotated[int, Meta(description="on_hand after this entry.")]
    held_after: int
    reason: str | None
    actor: Actor
    source: Annotated[str, Meta(description="What made it: a tool, a job, an order.")]
    source_ref: str | None
    by_variant: Annotated[
        dict[str, int] | None, Meta(description="Units that each variant took, by its gid; below zero: gave back.")
    ]
    reverts_id: Annotated[int | None, Meta(description="The entry this one undoes.")]
    hold_id: Annotated[int | None, Meta(description="The hold it took or ended.")]
    version: Annotated[int | None, Meta(description="Version of the shop with it; null in a dry run.")]
    created_at: Timestamp


class PoolStock(Struct):
    """What a pool holds now."""

    id: int
    name: str
    unit: str
    on_hand: int
    held: int
    buffer: int
    available: Annotated[int, Meta(description="max(0, on_hand - held - buffer)")]
    low_stock: Annotated[bool, Meta(description="Whether available is at or below low_stock_at.")]
    version: Annotated[int | None, Meta(description="For expected_version; null where nothing was stored.")]


class AffectedVariant(Struct):
    """A variant whose effective quantity changed."""

    variant_gid: str
    before: int
    after: int


class Hold(Struct):
    """A quantity that is kept for a caller until a moment."""

    id: Annotated[int | None, Meta(description="null in a dry run.")]
    expires_at: Timestamp
    reference: str | None


class StockChange(Struct):
    """What a change did, or in a dry run would do."""

    version: Annotated[int | None, Meta(description="Version of the shop with this change; null in a dry run.")]
    dry_run: bool
    entries: list[Entry]
    pools: Annotated[list[PoolStock], Meta(description="The pools changed, as they are after it.")]
    affected: Annotated[
        list[AffectedVariant] | None,
        Meta(description="The variants whose effective quantity it changes; null where more than 500 may be."),
    ]
    hold: Annotated[Hold | None, Meta(description="The hold that was taken; null for other changes.")]


class HeldQuantity(Struct):
    """What a hold keeps of one pool."""

    pool_id: int
    quantity: int


class ActiveHold(Struct):
    """A hold that has not ended."""

    id: int
    reference: str | None
    expires_at: Timestamp
    inserted_at: Timestamp
    pools: list[HeldQuantity]


class HoldList(Struct):
    """Holds that have not ended."""

    holds: list[ActiveHold]
    next_cursor: Annotated[str | None, Meta(description="For the next page; null on the last.")]


class StockHistory(Struct):
    """Entries of the ledger, the newest first."""

    entries: list[Entry]
    next_cursor: Annotated[str | None, Meta(description="For the next page; null on the last.")]


class StockAt(Struct):
    """What a pool held at a moment."""

    pool_id: int
    at: Timestamp
    on_hand: int
    held: int
    last_entry_id: Annotated[int | None, Meta(description="The last entry up to then; null before the first.")]


class StoredHold(Struct):
    """A row of `holds`, with the quantity it keeps of each pool.

    released_at    when it ended
    sold           whether it ended by a sale
    """

    id: int
    reference: str | None
    expires_at: datetime
    released_at: datetime | None
    lines: dict[int, int]
    sold: bool = False
