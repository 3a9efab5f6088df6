"""A platform with a shop that has the app."""

from collections.abc import AsyncGenerator

import pytest

from tests.demo.shopify.stage import PlatformStage, run_platform_with_app


@pytest.fixture
async def stage() -> AsyncGenerator[PlatformStage]:
    async with run_platform_with_app() as stage:
        yield stage
