"""A shop with a pool, beside the platform."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.inventory.sync.scene import Scene, pooled


@pytest.fixture
async def scene(settings: Settings) -> AsyncGenerator[Scene]:
    async with pooled(settings) as scene:
        yield scene
