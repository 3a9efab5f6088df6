"""A merchant changes the scopes of the app while it is installed."""

import pytest

from holdfast.inventory.installs import operations
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import DOMAIN, PlatformScene
from tests.helpers.platform_webhooks import deliver, handle


@pytest.fixture
async def shop(scene: PlatformScene) -> Shop:
    await scene.install()
    return await scene.find_shop()


async def grant(scene: PlatformScene, shop: Shop, *scopes: str) -> str:
    """Grant just these scopes at the platform, which tells of it. Returns how the shop is connected then."""
    platform_shop = scene.platform.shop(DOMAIN)
    platform_shop.scopes = list(scopes)
    scene.platform.state.store.put(DOMAIN, platform_shop)
    await deliver(shop, "app/scopes_update", {"previous": [], "current": ["whatever"]})
    await handle(scene.inventory)
    return (await scene.inventory.database.read(operations.connection_statuses))[shop.id]


async def test_a_shop_that_grants_too_few_scopes_reads_which_are_missing(scene: PlatformScene, shop: Shop) -> None:
    less = await grant(scene, shop, "read_products", "write_inventory", "read_locations")
    enough = await grant(scene, shop, "read_products", "write_inventory", "read_orders", "read_locations")

    assert less == "must be connected again: The shop has not granted: read_orders."
    assert enough == "connected"
    assert "read_orders" in (await scene.row("scopes"))[0]
