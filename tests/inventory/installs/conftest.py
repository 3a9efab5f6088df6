"""The service beside a platform, with a shop that does not have the app yet."""

from collections.abc import AsyncGenerator

import pytest

from tests.helpers.platform_shop import PlatformScene, PlatformSource, open_platform_scene


@pytest.fixture
async def scene(platform_source: PlatformSource) -> AsyncGenerator[PlatformScene]:
    async with open_platform_scene(platform_source) as scene:
        yield scene
