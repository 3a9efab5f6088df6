"""Orders change levels and send webhooks when lines are sold, changed, shipped or returned."""

from typing import Any

import pytest

from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import Order
from holdfast_demo.shopify.orders import LineEdit, LineReturn, SaleLine
from holdfast_demo.shopify.shops import NewVariant, change_variant
from tests.demo.shopify.stage import DOMAIN, PlatformStage

ORDER = """
query($id: ID!) {
  order(id: $id) {
    name cancelledAt cancelReason edited sourceName displayFulfillmentStatus currentSubtotalLineItemsQuantity
    retailLocation { name }
    lineItems(first: 10) { nodes { id quantity currentQuantity unfulfilledQuantity variant { id } } }
    refunds { refundLineItems(first: 10) { nodes { quantity restockType restocked location { id } lineItem { id } } } }
  }
}
"""


def available_and_committed(stage: PlatformStage, variant: int = 1) -> tuple[int, int]:
    """What is available of a variant, and what is committed."""
    level = stage.double.level(DOMAIN, stage.variants[variant].id)
    return level.available, level.committed


def sell(stage: PlatformStage, quantity: int = 2, **options: Any) -> Order:
    return stage.double.sell(DOMAIN, SaleLine(stage.variants[1].id, quantity), **options)


async def read_order(stage: PlatformStage, order: Order) -> Any:
    return (await stage.data(ORDER, id=order.gid))["order"]


async def refunded_lines(stage: PlatformStage, order: Order) -> list[tuple[int, str, bool]]:
    """What was taken back: how many, how, and whether they were put somewhere."""
    return [
        (line["quantity"], line["restockType"], line["location"] is not None)
        for refund in (await read_order(stage, order))["refunds"]
        for line in refund["refundLineItems"]["nodes"]
    ]


async def test_a_sale_commits_units_and_sends_webhooks(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE", "INVENTORY_LEVELS_UPDATE")

    order = sell(stage)
    message, level = (
        await stage.recorder.wait_for("orders/create"),
        await stage.recorder.wait_for("inventory_levels/update"),
    )

    assert available_and_committed(stage) == (6, 2)
    assert message.body["admin_graphql_api_id"] == order.gid
    assert message.body["line_items"][0]["quantity"] == 2
    assert level.body["available"] == 6
    assert level.headers["x-shopify-event-id"] == message.headers["x-shopify-event-id"]
    assert level.headers["x-shopify-webhook-id"] != message.headers["x-shopify-webhook-id"]


async def test_a_webhook_of_an_order_has_data_of_the_customer(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")

    sell(stage)
    message = await stage.recorder.wait_for("orders/create")

    assert message.body["customer"]["email"] == "ada@example.com"
    assert b"Lovelace" in message.raw


async def test_a_sold_out_variant_is_not_sold_but_concurrent_orders_may_oversell(stage: PlatformStage) -> None:
    with pytest.raises(ShopifyRefusal, match="only 8 left, not 9"):
        sell(stage, 9)
    assert stage.double.orders(DOMAIN) == []

    sell(stage, 9, even_if_sold_out=True)

    assert available_and_committed(stage) == (-1, 9)


async def test_variants_that_may_be_oversold_or_are_not_counted_are_sold(stage: PlatformStage) -> None:
    oversold, free = stage.double.add_product(
        DOMAIN, "Card", [NewVariant("Printed", policy="CONTINUE"), NewVariant("By mail", tracked=False)]
    )

    stage.double.sell(DOMAIN, SaleLine(oversold.id, 3), SaleLine(free.id, 3))

    assert stage.double.level(DOMAIN, oversold.id).available == -3
    assert stage.double.level(DOMAIN, free.id).available == 0


async def test_a_sale_at_a_till_is_fulfilled_at_once(stage: PlatformStage) -> None:
    till = stage.double.add_location(DOMAIN, "Shop", online=False)
    stage.double.stock(DOMAIN, stage.variants[1].id, till.id, 5)

    order = sell(stage, till=till.id)

    order_data = await read_order(stage, order)
    assert (order_data["sourceName"], order_data["retailLocation"]["name"]) == ("pos", "Shop")
    assert order_data["displayFulfillmentStatus"] == "FULFILLED"
    level = stage.double.level(DOMAIN, stage.variants[1].id, till.id)
    assert (level.available, level.committed) == (3, 0)
    assert available_and_committed(stage) == (8, 0)


async def test_an_order_takes_from_a_location_that_has_enough_and_sells_in_the_web(stage: PlatformStage) -> None:
    till, store = stage.double.add_location(DOMAIN, "Shop", online=False), stage.double.add_location(DOMAIN, "Store")
    for place in (till, store):
        stage.double.stock(DOMAIN, stage.variants[1].id, place.id, 20)

    order = sell(stage, 10)

    assert order.lines[0].location == store.id


async def test_an_order_that_is_sent_is_not_committed_any_more(stage: PlatformStage) -> None:
    order = sell(stage)

    stage.double.send(DOMAIN, order.id)

    assert available_and_committed(stage) == (6, 0)
    assert (await read_order(stage, order))["lineItems"]["nodes"][0]["unfulfilledQuantity"] == 0


async def test_a_cancelled_order_is_restocked_or_not(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CANCELLED", "REFUNDS_CREATE")
    back, lost = sell(stage), sell(stage)

    stage.double.cancel(DOMAIN, back.id)
    stage.double.cancel(DOMAIN, lost.id, restock=False)

    assert available_and_committed(stage) == (6, 0)
    assert await refunded_lines(stage, back) == [(2, "CANCEL", True)]
    assert await refunded_lines(stage, lost) == [(2, "NO_RESTOCK", False)]
    order_data = await read_order(stage, back)
    assert order_data["cancelledAt"]
    assert order_data["cancelReason"] == "CUSTOMER"
    assert order_data["currentSubtotalLineItemsQuantity"] == 0
    message = await stage.recorder.wait_for("orders/cancelled", 2)
    assert message.body["line_items"][0]["current_quantity"] == 0
    await stage.recorder.wait_for("refunds/create", 2)


async def test_a_part_of_an_order_is_refunded_before_and_after_it_is_sent_with_and_without_restocking(
    stage: PlatformStage,
) -> None:
    order = sell(stage, 6)
    line = order.lines[0].id

    stage.double.refund(DOMAIN, order.id, LineReturn(line, 1))
    stage.double.send(DOMAIN, order.id)
    stage.double.refund(DOMAIN, order.id, LineReturn(line, 2))
    stage.double.refund(DOMAIN, order.id, LineReturn(line, 1, restock=False))

    assert await refunded_lines(stage, order) == [(1, "CANCEL", True), (2, "RETURN", True), (1, "NO_RESTOCK", False)]
    assert available_and_committed(stage) == (5, 0)
    [line_data] = (await read_order(stage, order))["lineItems"]["nodes"]
    assert (line_data["quantity"], line_data["currentQuantity"]) == (6, 2)
    with pytest.raises(ShopifyRefusal, match="2 units can be taken back"):
        stage.double.refund(DOMAIN, order.id, LineReturn(line, 3))


async def test_a_returned_unit_can_go_to_another_location(stage: PlatformStage) -> None:
    store = stage.double.add_location(DOMAIN, "Store")
    stage.double.stock(DOMAIN, stage.variants[1].id, store.id)
    order = sell(stage)
    stage.double.send(DOMAIN, order.id)

    stage.double.refund(DOMAIN, order.id, LineReturn(order.lines[0].id, 2), location=store.id)

    assert available_and_committed(stage) == (6, 0)
    assert stage.double.level(DOMAIN, stage.variants[1].id, store.id).available == 2


async def test_an_order_is_edited_up_and_down_and_gets_a_further_variant(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_EDITED", "ORDERS_UPDATED")
    order = sell(stage)
    line = order.lines[0].id

    stage.double.edit(DOMAIN, order.id, LineEdit(line, 5))
    assert available_and_committed(stage) == (3, 5)
    stage.double.edit(DOMAIN, order.id, LineEdit(line, 1), added=[SaleLine(stage.variants[0].id, 4)])
    assert available_and_committed(stage) == (7, 1)

    order_data = await read_order(stage, order)
    lines = [(line_node["quantity"], line_node["currentQuantity"]) for line_node in order_data["lineItems"]["nodes"]]
    assert lines == [(5, 1), (4, 4)]
    assert order_data["edited"]
    message = await stage.recorder.wait_for("orders/edited", 2)
    assert message.body["order_edit"]["order_id"] == order.id
    assert message.body["order_edit"]["line_items"]["removals"] == [{"id": line, "delta": 4}]
    await stage.recorder.wait_for("orders/updated", 2)


async def test_a_sent_or_cancelled_order_cannot_be_changed(stage: PlatformStage) -> None:
    sent, cancelled = sell(stage), sell(stage)
    stage.double.send(DOMAIN, sent.id)
    stage.double.cancel(DOMAIN, cancelled.id)

    for action in (
        lambda: stage.double.cancel(DOMAIN, sent.id),
        lambda: stage.double.delete_order(DOMAIN, sent.id),
        lambda: stage.double.cancel(DOMAIN, cancelled.id),
        lambda: stage.double.edit(DOMAIN, cancelled.id, LineEdit(cancelled.lines[0].id, 1)),
        lambda: stage.double.edit(DOMAIN, sent.id, LineEdit(7, 1)),
        lambda: stage.double.send(DOMAIN, 7),
        lambda: stage.double.sell(DOMAIN),
        lambda: sell(stage, 0),
    ):
        with pytest.raises(ShopifyRefusal):
            action()


async def test_an_order_that_was_cancelled_can_be_deleted(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_DELETE")
    order = sell(stage)
    stage.double.cancel(DOMAIN, order.id)

    stage.double.delete_order(DOMAIN, order.id)

    assert await read_order(stage, order) is None
    assert (await stage.recorder.wait_for("orders/delete")).body == {"id": order.id}


async def test_an_order_outlives_its_variant(stage: PlatformStage) -> None:
    order = sell(stage)
    stage.double.remove_variant(DOMAIN, stage.variants[1].id)

    stage.double.cancel(DOMAIN, order.id)

    [line] = (await read_order(stage, order))["lineItems"]["nodes"]
    assert line["variant"] is None


async def test_an_order_of_an_untracked_variant_leaves_its_level_unchanged(stage: PlatformStage) -> None:
    change_variant(stage.double.state, DOMAIN, stage.variants[1].id, tracked=False)

    order = sell(stage)
    stage.double.send(DOMAIN, order.id)

    assert available_and_committed(stage) == (8, 0)


async def test_orders_of_long_ago_need_a_scope_of_their_own(stage: PlatformStage) -> None:
    order = sell(stage)
    stage.double.clock.advance(61 * 86_400)
    stage.token = stage.double.token(DOMAIN)

    assert await read_order(stage, order) is None
    assert (await stage.data("{ orders(first: 1) { nodes { id } } }"))["orders"]["nodes"] == []
    stage.double.install(DOMAIN, ["read_all_orders", "read_orders", "read_products", "read_locations"])
    assert (await stage.data("{ orders(first: 1) { nodes { id } } }"))["orders"]["nodes"] == [{"id": order.gid}]
