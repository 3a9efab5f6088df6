"""The messages of webhooks of the inventory service: their types, and what each says.

Triggers store them (`schema/triggers/`), except those about drift, which `store_drifts` stores. They have ids and
numbers only: tools read the rest.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from holdfast.inventory.pools.model import Policy
from holdfast.inventory.resources import Tx
from holdfast.kit.contract.messages import translatable
from holdfast.kit.webhooks.endpoints import MESSAGES_CHANNEL
from holdfast.kit.webhooks.model import MessageType

PoolId = Annotated[int, Meta(description="`get_pool` has the rest.")]


class ChangedStock(Struct):
    """The stock of a pool, after all changes that were stored together. `get_stock_history` has each of them."""

    pool_id: PoolId
    on_hand: int
    held: int
    available: Annotated[int, Meta(description="max(0, on_hand - held - buffer)")]
    version: Annotated[int, Meta(description="Of the pool; grows with every change.")]
    delta: Annotated[int, Meta(description="What was added to on_hand; negative: taken.")]
    held_delta: Annotated[int, Meta(description="What was added to held.")]
    kinds: Annotated[Sequence[str], Meta(description="Kinds of the entries, such as `sale`.")]
    entries: Annotated[int, Meta(description="How many entries the history got.")]
    last_entry_id: int
    variants: Annotated[
        Mapping[str, int] | None,
        Meta(
            description="How many of each variant of the pool can be sold. A variant that is not sold is left out."
            " null: the pool has more than 100; `get_availability` has them."
        ),
    ]


class LowStockPool(Struct):
    """A pool that has fallen to its limit."""

    pool_id: PoolId
    available: int
    low_stock_at: int
    version: int


class HeldPool(Struct):
    """What a hold keeps of a pool."""

    pool_id: int
    quantity: int


class PlacedHold(Struct):
    """A hold that keeps stock from now on."""

    hold_id: int
    reference: Annotated[str | None, Meta(description="As its caller gave it.")]
    expires_at: Annotated[str, Meta(extra_json_schema={"format": "date-time"}, description="UTC.")]
    pools: Sequence[HeldPool]


class EndedHold(Struct):
    """A hold that keeps nothing any more."""

    hold_id: int
    reference: str | None
    reason: Annotated[
        Literal["sold", "released", "expired"], Meta(description="sold: `record_sale` sold what it kept.")
    ]
    pools: Annotated[Sequence[HeldPool], Meta(description="What it kept.")]


class StockDrift(Struct):
    """Quantities at the platform that no order and no call of this service explains."""

    pool_id: PoolId
    policy: Policy
    variants: Annotated[
        dict[str, int], Meta(description="By how much each variant differs; positive: the platform has more.")
    ]


class ConnectedApp(Struct):
    """The app at the storefront platform."""

    shop: Annotated[str, Meta(description="The domain of the shop.")]
    scopes: Annotated[Sequence[str], Meta(description="What the shop has granted the app.")]


class RevokedKey(Struct):
    """An API key that no longer works."""

    key_id: int
    scopes: Annotated[Sequence[str], Meta(description="What it allowed.")]


_SINGLE, _SIX_PACK = (f"gid://shopify/ProductVariant/{number}" for number in (1001, 1006))
_POOLS = [HeldPool(1, 12)]

STOCK_DRIFT = "reconcile.drift_found"

MESSAGES = (
    MessageType(
        "stock.changed",
        translatable("The stock of a pool changed, by whatever cause."),
        ChangedStock(
            pool_id=1,
            on_hand=44,
            held=0,
            available=44,
            version=2,
            delta=-6,
            held_delta=0,
            kinds=["sale"],
            entries=1,
            last_entry_id=2,
            variants={_SINGLE: 44, _SIX_PACK: 7},
        ),
    ),
    MessageType(
        "stock.low",
        translatable("A pool fell to its limit for low stock."),
        LowStockPool(pool_id=1, available=5, low_stock_at=5, version=9),
    ),
    MessageType(
        "hold.placed",
        translatable("Stock was held."),
        PlacedHold(3, "cart 7", "2027-05-01T18:15:00.000000Z", _POOLS),
    ),
    MessageType(
        "hold.ended", translatable("A hold was sold, released, or expired."), EndedHold(3, "cart 7", "sold", _POOLS)
    ),
    MessageType(
        STOCK_DRIFT,
        translatable("Another program or a person changed quantities at the storefront platform."),
        StockDrift(1, "adopt", {_SINGLE: -2}),
    ),
    MessageType(
        "app.connected",
        translatable("The app was installed at the shop, or connected with it again."),
        ConnectedApp("honey.myshopify.com", ["read_products", "write_inventory"]),
    ),
    MessageType(
        "key.revoked",
        translatable("The API key of the shop was removed or replaced."),
        RevokedKey(1, ["read_inventory"]),
    ),
)


async def store_drifts(tx: Tx, shop_id: int, drifts: Sequence[StockDrift]) -> None:
    """Store a message for each pool that differs from the platform."""
    if not drifts:
        return
    await tx.run(
        """
        insert into webhook_messages (tenant_id, type, subject, data)
        select %(shop_id)s, %(type)s, 'pool ' || (drift ->> 'pool_id'), drift
          from jsonb_array_elements(%(drifts)s::jsonb) as drift
         where wants_webhook(%(shop_id)s, %(type)s)
        """,
        {"shop_id": shop_id, "type": STOCK_DRIFT, "drifts": msgspec.json.encode(drifts).decode()},
    )
    await tx.notify(MESSAGES_CHANNEL)
