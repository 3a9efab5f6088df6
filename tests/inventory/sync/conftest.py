"""A shop with a pool, beside the platform."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.inventory.installs.merchants import Place
from tests.inventory.sync.scene import Scene, pooled


@pytest.fixture
async def scene(place: Settings | Place) -> AsyncGenerator[Scene]:
    async with pooled(place) as scene:
        yield scene
