"""A platform with a shop that has the app."""

from collections.abc import AsyncGenerator

import pytest

from tests.demo.shopify.stage import Stage, installed


@pytest.fixture
async def stage() -> AsyncGenerator[Stage]:
    async with installed() as stage:
        yield stage
