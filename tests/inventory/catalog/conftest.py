"""A shop that has the app, beside the platform."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.helpers.platform_shop import Place
from tests.inventory.sync.sync_scene import SyncScene, open_installed_shop


@pytest.fixture
async def scene(place: Settings | Place) -> AsyncGenerator[SyncScene]:
    async with open_installed_shop(place) as scene:
        yield scene
