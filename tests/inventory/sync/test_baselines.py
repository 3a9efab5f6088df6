"""Sales around the first push of a level: each is counted once, and none is taken as an edit."""

from collections.abc import AsyncGenerator

import pytest

from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.orders import SaleLine
from tests.helpers.platform_shop import DOMAIN, SECRET, PlatformSource
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.sync.sync_scene import SyncScene, open_installed_shop


@pytest.fixture
async def scene(platform_source: PlatformSource) -> AsyncGenerator[SyncScene]:
    """A shop with a pool of 50, whose levels nobody has attended to yet, and of which a 6-pack was sold since."""
    async with open_installed_shop(platform_source) as scene:
        await scene.link()
        scene.platform.sell(DOMAIN, SaleLine(scene.variants["6-pack"].id, 1))
        yield scene


async def count_the_order(scene: SyncScene) -> None:
    [order] = scene.platform.orders(DOMAIN)
    await deliver(scene.shop, "orders/create", payloads.order(order), secret=SECRET.encode())
    await handle(scene.inventory)
    await scene.end_push_pause()
    await scene.sync_due()


async def the_sale_counts_once(scene: SyncScene) -> None:
    for _ in range(2):
        assert await scene.shop.on_hand(scene.pool_id) == 44
        assert scene.levels() == (44, 7, 3)
        await scene.end_grace_and_sync()
    kinds = [entry["kind"] for entry in await scene.shop.entries()]
    assert kinds == ["sale", "set"]


async def test_a_sale_that_a_level_has_already_is_counted_once_when_its_order_comes(scene: SyncScene) -> None:
    await scene.observe_levels("6-pack")
    await scene.sync_due()
    await count_the_order(scene)

    await the_sale_counts_once(scene)


async def test_a_sale_counted_before_its_level_is_observed_is_no_edit(scene: SyncScene) -> None:
    await count_the_order(scene)
    assert scene.levels() == (44, 7, 3)
    assert await scene.row("6-pack", "available, expected, suspect_at is not null") == (8, 7, True)
    await scene.observe_levels("6-pack")
    await scene.sync_due()

    await the_sale_counts_once(scene)


async def test_a_sale_whose_level_is_never_observed_is_found_when_the_level_is_read(scene: SyncScene) -> None:
    await count_the_order(scene)
    await scene.end_grace_and_sync()

    await the_sale_counts_once(scene)
