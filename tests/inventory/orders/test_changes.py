"""Changes of an order change the stock by the difference, in any order of the webhooks."""

import itertools

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop
from tests.inventory.orders.stories import PlatformOrder, deliver_orders


@pytest.mark.parametrize(("kind", "left"), [("cancel", 50), ("return", 50), ("legacy_restock", 50), ("no_restock", 38)])
async def test_cancelled_units_come_back_if_they_are_restocked(
    inventory: Inventory, golden_shop: Shop, kind: str, left: int
) -> None:
    order = PlatformOrder((SIX_PACK, 2))
    await deliver_orders(inventory, order.payload(), shop=golden_shop, topic="orders/create")
    order.cancel(kind)

    await deliver_orders(inventory, order.payload(), shop=golden_shop, topic="orders/cancelled")

    assert await golden_shop.on_hand(1) == left


async def test_returned_units_are_an_entry_of_their_own_kind(inventory: Inventory, golden_shop: Shop) -> None:
    order = PlatformOrder((SIX_PACK, 2), (SINGLE, 3))
    packs, singles = order.lines
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    order.back(packs, 1)
    order.back(singles, 2, "no_restock")

    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    [back, sale] = await golden_shop.entries(source_ref=order.gid)
    assert (sale["kind"], sale["delta"]) == ("sale", -15)
    assert (back["kind"], back["delta"], back["balance_after"]) == ("cancel", 6, 41)
    assert back["reason"] == f"Order #{order.id}: 1 of variant 1006 came back."
    assert (await golden_shop.refusal("revert_entry", entry_id=back["id"]))["code"] == "not_revertible"


async def test_units_that_came_back_do_not_add_to_the_pace_of_their_pool(
    inventory: Inventory, golden_shop: Shop
) -> None:
    order = PlatformOrder((SIX_PACK, 7))
    [packs] = order.lines
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    order.back(packs, 7)
    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    [listed] = (await golden_shop.call("list_low_stock", threshold=50))["pools"]

    assert (listed["available"], listed["taken_per_day"], listed["days_of_cover"]) == (50, 0.0, None)


async def test_units_that_left_an_order_without_a_refund_come_back(inventory: Inventory, golden_shop: Shop) -> None:
    order = PlatformOrder((SIX_PACK, 3))
    [line] = order.lines
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    order.lines[line][2] = 1
    order.later()

    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert await golden_shop.on_hand(1) == 44


async def test_a_line_without_a_current_quantity_is_computed_from_its_refunds(
    inventory: Inventory, golden_shop: Shop
) -> None:
    order = PlatformOrder((SINGLE, 9))
    [line] = order.lines
    order.back(line, 2)
    order.back(line, 3, "no_restock")
    payload = order.payload()
    del payload["line_items"][0]["current_quantity"]

    await deliver_orders(inventory, payload, shop=golden_shop)

    assert await golden_shop.on_hand(1) == 50 - 7


async def test_increased_and_returned_units_of_one_pool_are_summed(inventory: Inventory, golden_shop: Shop) -> None:
    order = PlatformOrder((SIX_PACK, 1), (SINGLE, 1))
    packs, singles = order.lines
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    order.back(packs, 1)
    order.more(singles, 6)

    await deliver_orders(inventory, order.payload(), shop=golden_shop)

    assert len(await golden_shop.entries(source_ref=order.gid)) == 1
    assert await golden_shop.on_hand(1) == 43
    order.more(singles, 1)
    order.later()
    await deliver_orders(inventory, order.payload(), shop=golden_shop)
    assert await golden_shop.on_hand(1) == 42


async def test_states_of_an_order_received_in_any_order_end_in_the_newest(
    inventory: Inventory, golden_shop: Shop
) -> None:
    """Sold, increased, partly refunded, with a further line, and partly lost: as told in every fifth possible order."""
    left = 0
    for places in itertools.islice(itertools.permutations(range(5)), 0, None, 5):
        order = PlatformOrder((SIX_PACK, 1))
        [line] = order.lines
        states = [order.payload()]
        order.more(line, 2)
        order.later()
        states.append(order.payload())
        order.back(line, 1)
        states.append(order.payload())
        further = order.add(SINGLE, 4)
        order.later()
        states.append(order.payload())
        order.back(further, 1, "no_restock")
        states.append(order.payload())
        await deliver_orders(inventory, *(states[place] for place in places), shop=golden_shop)
        left += 2 * 6 + 4

        assert await golden_shop.on_hand(1) == 50 - left, places

    assert await inventory.ledger_differences() == []
