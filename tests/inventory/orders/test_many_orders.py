"""Orders that wait are applied together; none of them holds back the others."""

from holdfast_demo.shopify.orders import LineEdit
from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop
from tests.helpers.platform_shop import DOMAIN
from tests.helpers.platform_webhooks import deliver, handle, install_app
from tests.inventory.orders.order_scene import OrderScene
from tests.inventory.orders.stories import PlatformOrder, delivery_errors


async def test_orders_that_wait_are_counted_in_few_transactions(inventory: Inventory, golden_shop: Shop) -> None:
    other = await install_app(inventory)
    orders = [PlatformOrder((SINGLE, 1), (SIX_PACK, 1)) for _ in range(30)]
    for order in orders:
        for topic in ("orders/create", "orders/updated"):
            await deliver(golden_shop, topic, order.payload())
        await deliver(other, "orders/create", order.payload())

    assert await handle(inventory) == 90

    assert await golden_shop.on_hand(1) == 50 - 30 * 7
    assert await inventory.sql("select count(*), count(distinct created_at) <= 4 from ledger") == [(31, True)]
    assert await inventory.ledger_differences() == []
    assert await delivery_errors(inventory) == []


async def test_an_order_that_cannot_be_counted_holds_back_no_other(inventory: Inventory, golden_shop: Shop) -> None:
    for order in (
        PlatformOrder((SIX_PACK, 1)),
        PlatformOrder((SIX_PACK, 1), updated_at="yesterday"),
        PlatformOrder((SIX_PACK, 1)),
    ):
        await deliver(golden_shop, "orders/create", order.payload())

    await handle(inventory)

    assert await golden_shop.on_hand(1) == 50 - 12
    [error] = await delivery_errors(inventory)
    assert "It cannot be read" in error


async def test_an_order_that_a_pool_cannot_count_holds_back_no_other(inventory: Inventory, golden_shop: Shop) -> None:
    gid = "gid://shopify/ProductVariant/9"
    await golden_shop.call("link_variants", pool_id=1, members=[{"variant_gid": gid, "units_per_sale": 10**9}])
    large = PlatformOrder((gid, 10**9))
    for order in (PlatformOrder((SIX_PACK, 1)), large, PlatformOrder((SIX_PACK, 1))):
        await deliver(golden_shop, "orders/create", order.payload())

    await handle(inventory)

    assert await golden_shop.on_hand(1) == 50 - 12
    [error] = await delivery_errors(inventory)
    assert f"{large.gid} cannot be counted: pool 1 can hold" in error


async def test_orders_that_must_be_read_are_counted_beside_those_that_came_whole(scene: OrderScene) -> None:
    unclear = scene.sell((0, 5))
    scene.platform.edit(DOMAIN, unclear.id, LineEdit(unclear.lines[0].id, 2))
    scene.sell((1, 2))

    messages, scene.messages = scene.messages, []
    await scene.deliver(*messages, at_once=True)

    assert await scene.left() == 50 - 2 - 12
