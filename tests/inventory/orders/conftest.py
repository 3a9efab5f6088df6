"""A shop that has the app, and a pool of 50 sold one by one, by six and by twelve."""

from collections.abc import AsyncIterator

import pytest

from holdfast.inventory.settings import Settings
from tests.inventory.installs.merchants import Place
from tests.inventory.orders.scene import Scene, open_scene
from tests.inventory.support import Inventory, Shop
from tests.inventory.webhooks.deliveries import install_app


@pytest.fixture
async def golden(inventory: Inventory) -> Shop:
    shop = await install_app(inventory)
    await shop.golden()
    return shop


@pytest.fixture
async def scene(place: Settings | Place) -> AsyncIterator[Scene]:
    async with open_scene(place) as scene:
        yield scene
