"""Orders of which no webhook came are found at the platform."""

from holdfast_demo.shopify.orders import LineEdit, LineReturn, SaleLine
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.orders.order_scene import OrderScene, catch_up_orders
from tests.inventory.sync.platform_rows import withdraw_access


async def test_orders_and_refunds_without_webhooks_are_counted_once(scene: OrderScene) -> None:
    refunded = scene.sell((0, 1))
    await scene.deliver_all()
    scene.platform.clock.advance(2)
    scene.platform.refund(DOMAIN, refunded.id, LineReturn(refunded.lines[0].id, 1))
    order = scene.sell((1, 2), (0, 3))
    scene.platform.refund(
        DOMAIN, order.id, LineReturn(order.lines[0].id, 1, restock=False), LineReturn(order.lines[1].id, 2)
    )
    scene.platform.sell(DOMAIN, SaleLine(scene.platform.variants(DOMAIN)[3].id, 1))

    assert await catch_up_orders(scene) == 2
    assert await scene.left() == 50 - 13
    assert await catch_up_orders(scene) == 0
    await scene.deliver_all()
    assert await scene.left() == 50 - 13


async def test_an_order_changed_twice_in_a_second_is_found_although_one_webhook_came(scene: OrderScene) -> None:
    edited, refunded = scene.sell((0, 4)), scene.sell((1, 1))
    scene.sell((2, 1))
    await scene.deliver_all()
    scene.platform.edit(DOMAIN, edited.id, LineEdit(edited.lines[0].id, 1))
    scene.platform.refund(DOMAIN, refunded.id, LineReturn(refunded.lines[0].id, 1))
    for order in scene.platform.orders(DOMAIN):
        order.updated = order.created
        scene.platform.state.store.put(DOMAIN, order)

    assert await catch_up_orders(scene) == 2
    assert await scene.left() == 50 - 1 - 12


async def test_more_orders_than_a_page_are_found(scene: OrderScene) -> None:
    for _ in range(60):
        scene.sell((0, 1))
    many = scene.sell(*[(0, 1)] * 6)

    assert await catch_up_orders(scene) == 61
    assert await scene.left() == 50 - 66
    assert many.gid in {entry["source_ref"] for entry in await scene.shop.entries()}


async def test_orders_of_a_shop_without_access_are_not_fetched(scene: OrderScene) -> None:
    await withdraw_access(scene.inventory)
    scene.sell((0, 1))

    assert await catch_up_orders(scene) == 0
    assert await scene.left() == 50


async def test_orders_of_a_shop_that_never_linked_a_variant_are_not_fetched(scene: OrderScene) -> None:
    await scene.inventory.sql("delete from links")
    scene.sell((0, 1))

    assert await catch_up_orders(scene) == 0
