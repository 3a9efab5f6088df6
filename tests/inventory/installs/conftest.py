"""The service beside a platform, with a shop that does not have the app yet."""

from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.settings import Settings
from tests.helpers.platform_shop import Place, PlatformScene, beside_the_platform


@pytest.fixture
async def scene(place: Settings | Place) -> AsyncGenerator[PlatformScene]:
    async with beside_the_platform(place) as scene:
        yield scene
