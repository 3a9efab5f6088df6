"""A shop with a pool, beside the platform."""

from collections.abc import AsyncGenerator

import pytest

from tests.helpers.platform_shop import PlatformSource
from tests.inventory.sync.sync_scene import SyncScene, open_pooled_shop


@pytest.fixture
async def scene(platform_source: PlatformSource) -> AsyncGenerator[SyncScene]:
    async with open_pooled_shop(platform_source) as scene:
        yield scene
