"""The service beside a platform, with a shop that does not have the app yet."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.inventory.installs.merchants import Scene, beside_the_platform


@pytest.fixture
async def scene(settings: Settings) -> AsyncGenerator[Scene]:
    async with beside_the_platform(settings) as scene:
        yield scene
