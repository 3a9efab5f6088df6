"""A shop that has the app, with 50 singles, 8 6-packs and 4 12-packs of honey at the platform, and no pool."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.helpers.platform_shop import Place
from tests.inventory.sync.sync_scene import SyncScene, open_installed_shop


@pytest.fixture
async def scene(place: Settings | Place) -> AsyncGenerator[SyncScene]:
    async with open_installed_shop(place) as scene:
        yield scene
