"""A shop that uninstalls the app, and what the platform tells of it."""

from typing import Any

from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import DOMAIN, PlatformScene
from tests.helpers.platform_webhooks import deliver, handle

SHOP_PAYLOAD = {"id": 1, "myshopify_domain": DOMAIN}


async def uninstall_app(scene: PlatformScene, shop: Shop) -> None:
    """Uninstall the app at the platform, which tells the service."""
    if scene.platform.shop(DOMAIN).installed:
        scene.platform.uninstall(DOMAIN)
    await tell_of_uninstall(scene, shop)


async def tell_of_uninstall(scene: PlatformScene, shop: Shop, body: Any = SHOP_PAYLOAD, **headers: Any) -> None:
    assert (await deliver(shop, "app/uninstalled", body, **headers)).status_code == 200
    await handle(scene.inventory)


async def move_uninstall_back(scene: PlatformScene) -> None:
    """Since the uninstall. Then the platform says that the data is to be deleted."""
    await scene.inventory.sql("update installs set uninstalled_at = uninstalled_at - interval '48 hours'")
