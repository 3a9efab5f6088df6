"""Sales and returns at a location where the variant was not stocked before: each is counted once, and is no edit."""

import itertools

import pytest

from holdfast_demo.shopify.orders import LineReturn, SaleLine
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.sync.sync_scene import SyncScene, deliver_and_sync, listen_to_platform


async def the_end(scene: SyncScene) -> tuple[int, list[str]]:
    """What the pool has, and the kinds of its entries, when all differences are handled."""
    for _ in range(4):
        await scene.end_grace_and_sync()
    return await scene.shop.on_hand(scene.pool_id), [entry["kind"] for entry in await scene.shop.entries()]


ORDERS = [*itertools.permutations(range(4))]


@pytest.mark.parametrize("places", ORDERS[:: len(ORDERS) // 12], ids=str)
async def test_a_sale_at_a_till_where_the_variant_was_not_stocked_is_counted_once(
    scene: SyncScene, places: tuple[int, ...]
) -> None:
    messages = listen_to_platform(scene)
    stall = scene.platform.add_location(DOMAIN, "Market stall")
    scene.platform.sell(DOMAIN, SaleLine(scene.variants["Single"].id, 6), even_if_sold_out=True, till=stall.id)
    await deliver_and_sync(scene, *(messages[place] for place in places))

    assert await the_end(scene) == (44, ["sale", "set"])
    assert scene.platform.level(DOMAIN, scene.variants["Single"].id).available == 44


@pytest.mark.parametrize("level_first", [True, False])
async def test_a_return_at_a_location_where_the_variant_was_not_stocked_is_counted_once(
    scene: SyncScene, level_first: bool
) -> None:
    messages = listen_to_platform(scene)
    stall = scene.platform.add_location(DOMAIN, "Market stall")
    order = scene.platform.sell(DOMAIN, SaleLine(scene.variants["Single"].id, 6))
    scene.platform.send(DOMAIN, order.id)
    await deliver_and_sync(scene, *messages)
    messages.clear()
    scene.platform.clock.advance(2)
    scene.platform.refund(DOMAIN, order.id, LineReturn(order.lines[0].id, 4), location=stall.id)
    await deliver_and_sync(scene, *(messages if level_first else reversed(messages)))

    assert await the_end(scene) == (48, ["cancel", "sale", "set"])
    assert scene.platform.level(DOMAIN, scene.variants["Single"].id).available == 48


async def test_a_sale_at_a_level_of_which_no_webhook_comes_is_no_edit(scene: SyncScene) -> None:
    messages = listen_to_platform(scene)
    stall = scene.platform.add_location(DOMAIN, "Market stall")
    scene.platform.sell(DOMAIN, SaleLine(scene.variants["Single"].id, 6), even_if_sold_out=True, till=stall.id)
    await deliver_and_sync(scene, *(message for message in messages if message[0] == "orders/create"))

    assert await the_end(scene) == (44, ["sale", "set"])


async def test_a_sale_at_a_level_that_is_gone_again_is_no_edit(scene: SyncScene) -> None:
    messages = listen_to_platform(scene)
    stall = scene.platform.add_location(DOMAIN, "Market stall")
    single = scene.variants["Single"]
    scene.platform.sell(DOMAIN, SaleLine(single.id, 6), even_if_sold_out=True, till=stall.id)
    scene.platform.state.levels.remove(DOMAIN, single.item, stall.id)
    gone = ("inventory_levels/disconnect", {"inventory_item_id": single.item, "location_id": stall.id})
    order = [message for message in messages if message[0] == "orders/create"]
    others = [message for message in messages if message[0] != "orders/create"]
    await deliver_and_sync(scene, *others, gone, *order)

    assert await the_end(scene) == (44, ["sale", "set"])


async def test_an_edit_at_a_location_that_is_left_alone_takes_no_sale_for_itself(scene: SyncScene) -> None:
    messages = listen_to_platform(scene)
    stall = scene.platform.add_location(DOMAIN, "Market stall")
    single = scene.variants["Single"]
    scene.platform.stock(DOMAIN, single.id, stall.id, 20)
    await deliver_and_sync(scene, *messages)
    messages.clear()
    scene.platform.clock.advance(2)
    scene.platform.count(DOMAIN, single.id, 10, stall.id)
    await deliver_and_sync(scene, *messages)
    await scene.end_grace_and_sync()
    messages.clear()
    for _ in range(3):
        scene.platform.clock.advance(2)
        scene.platform.sell(DOMAIN, SaleLine(single.id, 1))
    await deliver_and_sync(scene, *(message for message in messages if message[0] == "orders/create"))
    await deliver_and_sync(scene, *(message for message in messages if message[0] != "orders/create"))

    assert await the_end(scene) == (47, ["sale", "sale", "sale", "set"])


async def test_a_sale_received_after_another_level_began_is_explained_at_its_own(scene: SyncScene) -> None:
    messages = listen_to_platform(scene)
    single = scene.variants["Single"]
    scene.platform.sell(DOMAIN, SaleLine(single.id, 6))
    sold = [*messages]
    messages.clear()
    scene.platform.clock.advance(2)
    stall = scene.platform.add_location(DOMAIN, "Market stall")
    scene.platform.stock(DOMAIN, single.id, stall.id, 20)
    await deliver_and_sync(scene, *messages, *sold)

    assert await the_end(scene) == (44, ["sale", "set"])
