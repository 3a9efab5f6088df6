"""Holds end by themselves when their time comes, on any process."""

import asyncio
import contextlib

import psycopg
import pytest

from holdfast.inventory.settings import Settings
from holdfast.inventory.stock import expiry
from holdfast.inventory.stock.stock_changes import HOLDS_CHANNEL
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop, running_inventory


async def held_quantity(shop: Shop, pool_id: int) -> int:
    return (await shop.call("get_pool", pool_id=pool_id))["held"]


async def come(inventory: Inventory, *ids: int) -> None:
    """Let the time of these holds come."""
    await inventory.sql("update holds set expires_at = now() where id = any(%(ids)s)", ids=list(ids))


async def test_a_hold_whose_time_has_come_gives_back_what_it_kept(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, reference="cart 7"))["hold"]
    await come(inventory, hold["id"])

    assert await expiry.expire(inventory.database) == 1

    entry = (await shop.entries())[0]
    assert (entry["kind"], entry["held_delta"], entry["held_after"]) == ("release", -6, 0)
    assert (entry["actor"], entry["source"], entry["source_ref"]) == ("system", "hold expiry", "cart 7")
    assert await held_quantity(shop, pool["id"]) == 0


async def test_a_hold_whose_time_has_not_come_stays(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    early = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6))["hold"]
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=5)
    await come(inventory, early["id"])

    assert await expiry.expire(inventory.database) == 1
    assert await expiry.expire(inventory.database) == 0

    assert await held_quantity(shop, pool["id"]) == 5


async def test_a_released_hold_does_not_expire(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6))["hold"]
    await shop.call("release_hold", hold_id=hold["id"])
    await come(inventory, hold["id"])

    assert await expiry.expire(inventory.database) == 0
    assert len(await shop.entries()) == 3


async def test_an_expired_hold_cannot_be_released(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6))["hold"]
    await come(inventory, hold["id"])
    await expiry.expire(inventory.database)

    assert (await shop.refusal("release_hold", hold_id=hold["id"]))["code"] == "hold_ended"


async def test_a_kit_is_given_back_to_every_pool(shop: Shop, inventory: Inventory) -> None:
    jars = await shop.create_pool(50, members=[{"variant_gid": SIX_PACK, "units_per_sale": 6}])
    boxes = await shop.create_pool(5, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    hold = (await shop.call("hold_quantity", variant_gid=SIX_PACK, quantity=3))["hold"]
    await come(inventory, hold["id"])

    await expiry.expire(inventory.database)

    assert [await held_quantity(shop, pool["id"]) for pool in (jars, boxes)] == [0, 0]
    assert await inventory.ledger_differences() == []


async def test_holds_of_several_shops_and_of_one_pool_expire_together(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    mine, theirs = await shop.create_pool(50), await other.create_pool(50)
    for _ in range(3):
        await shop.call("hold_quantity", pool_id=mine["id"], quantity=2)
    await other.call("hold_quantity", pool_id=theirs["id"], quantity=2)
    await inventory.sql("update holds set expires_at = now()")

    assert await expiry.expire(inventory.database) == 4

    assert (await held_quantity(shop, mine["id"]), await held_quantity(other, theirs["id"])) == (0, 0)
    assert await inventory.ledger_differences() == []


async def test_concurrent_processes_give_an_expired_hold_back_once(
    shop: Shop, inventory: Inventory, settings: Settings
) -> None:
    pool = await shop.create_pool(50)
    for _ in range(20):
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=2)
    await inventory.sql("update holds set expires_at = now()")

    async with running_inventory(settings) as second:
        ended = await asyncio.gather(
            *(expiry.expire(process.database) for process in (inventory, second, inventory, second))
        )

    assert sum(ended) == 20
    assert await held_quantity(shop, pool["id"]) == 0
    assert await inventory.ledger_differences() == []


async def test_a_shop_whose_books_are_damaged_keeps_no_other_shop_waiting(inventory: Inventory) -> None:
    """Its own hold cannot be ended before an operator has repaired it; those of other shops can."""
    shops = [await inventory.create_shop() for _ in range(3)]
    pools = [await shop.create_pool(50) for shop in shops]
    for shop, pool in zip(shops, pools, strict=True):
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=6)
    await inventory.sql("update pools set entries = 0 where id = %(id)s", id=pools[1]["id"])
    await inventory.sql("update holds set expires_at = now()")

    with contextlib.suppress(psycopg.Error):
        await expiry.expire(inventory.database)

    assert [await held_quantity(shop, pool["id"]) for shop, pool in zip(shops, pools, strict=True)] == [0, 6, 0]


def running_expiry(inventory: Inventory) -> contextlib.AbstractAsyncContextManager[None]:
    """The loop that ends holds, as a process runs it."""
    return run_in_background(expiry.LOOP.run(inventory.database))


async def test_a_hold_is_ended_as_soon_as_its_time_comes(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50, members=[{"variant_gid": SINGLE, "units_per_sale": 1}])

    async with running_expiry(inventory):
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, ttl_s=1)
        assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 44}

        async def is_released() -> bool:
            return (await shop.read_storefront()).json()["variants"] == {SINGLE: 50}

        # Sooner than the poll, which comes every five seconds: the hold itself woke the watcher.
        await eventually(is_released, expiry.POLL_SECONDS - 1)


async def test_a_shorter_hold_does_not_wait_for_a_longer_one(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    async with running_expiry(inventory):
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=6, ttl_s=600)
        await shop.call("hold_quantity", pool_id=pool["id"], quantity=5, ttl_s=1)

        async def only_the_longer_is_left() -> bool:
            return await held_quantity(shop, pool["id"]) == 6

        await eventually(only_the_longer_is_left, expiry.POLL_SECONDS - 1)


@pytest.mark.parametrize("turns", range(5))
async def test_a_watcher_of_holds_that_is_cancelled_during_a_notification_stops(
    inventory: Inventory, turns: int
) -> None:
    def cancel(turns: int) -> None:
        """Cancel it some turns of the event loop after the notification."""
        if turns:
            asyncio.get_running_loop().call_soon(cancel, turns - 1)
        else:
            task.cancel()

    task = asyncio.create_task(expiry.LOOP.run(inventory.database))
    for _ in range(10):
        await inventory.sql("select 'so that it has come to wait for a notification'")
    with inventory.database.listen(HOLDS_CHANNEL, lambda _: cancel(turns)):
        await inventory.sql("select pg_notify('holdfast', 'holds ')")
        await asyncio.wait([task], timeout=3)

    assert task.cancelled()


@pytest.mark.parametrize(
    ("seconds_until_expiry", "rest"), [(None, 5.0), (0.25, 0.25), (60.0, 5.0), (0.0, 1.0), (-3600.0, 1.0)]
)
def test_an_overdue_hold_that_could_not_be_ended_is_left_alone_for_a_moment(
    seconds_until_expiry: float | None, rest: float
) -> None:
    assert expiry.pause(seconds_until_expiry) == rest
