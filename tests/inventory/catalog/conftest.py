"""A shop that has the app, beside the platform."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.inventory.installs.merchants import Place
from tests.inventory.sync.scene import Scene, installed


@pytest.fixture
async def scene(place: Settings | Place) -> AsyncGenerator[Scene]:
    async with installed(place) as scene:
        yield scene
