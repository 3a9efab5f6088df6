"""Orders are read from the platform where a webhook is incomplete."""

from holdfast_demo.shopify.orders import LineEdit, LineReturn, SaleLine
from tests.helpers.platform_shop import DOMAIN
from tests.helpers.platform_webhooks import handle
from tests.inventory.orders.order_scene import OrderScene


async def test_an_order_is_counted_from_its_refund_when_nothing_else_arrives(scene: OrderScene) -> None:
    order = scene.sell((1, 3))
    scene.platform.refund(DOMAIN, order.id, LineReturn(order.lines[0].id, 1))

    await scene.deliver(scene.pick("refunds/create"))

    assert await scene.left() == 50 - 2 * 6
    [entry] = await scene.shop.entries(source_ref=order.gid)
    assert (entry["kind"], entry["delta"], entry["source"]) == ("sale", -12, "webhook")


async def test_an_edit_is_counted_up_and_down_and_with_a_further_variant(scene: OrderScene) -> None:
    order = scene.sell((0, 2))
    await scene.deliver_all()
    line = order.lines[0].id

    scene.platform.edit(DOMAIN, order.id, LineEdit(line, 5), added=[SaleLine(scene.variants[1], 1)])
    await scene.deliver(scene.pick("orders/edited"))
    assert await scene.left() == 50 - 5 - 6

    scene.platform.edit(DOMAIN, order.id, LineEdit(line, 1))
    await scene.deliver(scene.pick("orders/edited"))
    assert await scene.left() == 50 - 1 - 6

    scene.platform.edit(DOMAIN, order.id, LineEdit(line, 0, restock=False))
    await scene.deliver(scene.pick("orders/edited"))
    assert await scene.left() == 50 - 1 - 6


async def test_an_order_that_changed_twice_in_a_second_is_counted_as_it_became(scene: OrderScene) -> None:
    order = scene.sell((0, 9))
    for quantity in (7, 3):
        scene.platform.edit(DOMAIN, order.id, LineEdit(order.lines[0].id, quantity))
    updates = [message for message in scene.messages if message.topic == "orders/updated"]

    await scene.deliver(*reversed(updates))

    assert await scene.left() == 50 - 3


async def test_many_lines_and_refunds_are_read_page_by_page(scene: OrderScene) -> None:
    order = scene.sell(*[(0, 2)] * 60)
    for line in order.lines[:25]:
        scene.platform.refund(DOMAIN, order.id, LineReturn(line.id, 1, restock=False))
    scene.platform.refund(DOMAIN, order.id, *(LineReturn(line.id, 1) for line in order.lines[:25]))
    scene.platform.refund(DOMAIN, order.id, *(LineReturn(line.id, 2, restock=False) for line in order.lines[30:55]))

    await scene.deliver(scene.pick("refunds/create"))

    assert await scene.left() == 50 - 120 + 25


async def test_a_refund_of_an_order_that_cannot_be_read_any_more_changes_nothing(scene: OrderScene) -> None:
    order = scene.sell((0, 9))
    await scene.deliver_all()
    scene.platform.cancel(DOMAIN, order.id)
    message = scene.pick("refunds/create")
    scene.platform.delete_order(DOMAIN, order.id)

    await scene.deliver(message)
    error = "The platform does not show order"
    assert [error in why for (why,) in await scene.inventory.sql("select error from webhooks where error <> ''")] == [
        True
    ]
    await scene.inventory.sql(
        "update webhooks set due_at = now(), received_at = now() - interval '61 seconds' where handled_at is null"
    )
    await handle(scene.inventory)

    assert await scene.left() == 41


async def test_a_state_older_than_a_received_refund_is_not_counted(scene: OrderScene) -> None:
    order = scene.sell((0, 9))
    await scene.deliver_all()
    scene.platform.refund(DOMAIN, order.id, LineReturn(order.lines[0].id, 4))
    message = scene.pick("refunds/create")
    await scene.deliver(message._replace(payload={**message.payload, "id": 7}))

    assert await scene.shop.on_hand(1) == 41
    [(error,)] = await scene.inventory.sql("select error from webhooks where handled_at is null")
    assert error == f"The platform shows an old state of order {order.id}."


async def test_an_order_that_stays_older_than_its_edit_is_counted_after_a_minute(scene: OrderScene) -> None:
    order = scene.sell((0, 9))
    await scene.deliver_all()
    scene.platform.edit(DOMAIN, order.id, LineEdit(order.lines[0].id, 4))
    message = scene.pick("orders/edited")
    edit = {**message.payload["order_edit"], "created_at": "2099-01-01T00:00:00Z"}
    await scene.deliver(message._replace(payload={"order_edit": edit}))
    assert await scene.shop.on_hand(1) == 41

    await scene.inventory.sql(
        "update webhooks set due_at = now(), received_at = now() - interval '61 seconds' where handled_at is null"
    )
    await handle(scene.inventory)

    assert await scene.left() == 46


async def test_an_order_of_which_a_line_is_missing_is_read(scene: OrderScene) -> None:
    order = scene.sell((0, 2), (1, 1))
    await scene.deliver_all()
    scene.platform.clock.advance(2)
    scene.platform.send(DOMAIN, order.id)
    message = scene.pick("orders/updated")

    await scene.deliver(message._replace(payload={**message.payload, "line_items": message.payload["line_items"][:1]}))

    assert await scene.left() == 50 - 2 - 6
