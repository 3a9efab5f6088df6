"""A shop that has the app, beside the platform."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.inventory.sync.scene import Scene, installed


@pytest.fixture
async def scene(settings: Settings) -> AsyncGenerator[Scene]:
    async with installed(settings) as scene:
        yield scene
