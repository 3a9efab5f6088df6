"""A shop that has the app, and a pool of 50 sold one by one, by six and by twelve."""

from collections.abc import AsyncIterator

import pytest

from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_shop import PlatformSource
from tests.helpers.platform_webhooks import install_app
from tests.inventory.orders.order_scene import OrderScene, open_order_scene


@pytest.fixture
async def golden_shop(inventory: Inventory) -> Shop:
    shop = await install_app(inventory)
    await shop.create_golden_pool()
    return shop


@pytest.fixture
async def scene(platform_source: PlatformSource) -> AsyncIterator[OrderScene]:
    async with open_order_scene(platform_source) as scene:
        yield scene
