"""Fixtures of the tests of agents' credentials."""

from collections.abc import AsyncIterator

import pytest

from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from tests.inventory.agents.scene import DOMAIN, Scene, running


@pytest.fixture
async def scene(settings: Settings) -> AsyncIterator[Scene]:
    """The doors for credentials, and one shop."""
    async with running(settings) as (http, database):
        shop, key = await database.transact(lambda tx: shops.add(tx, DOMAIN))
        yield Scene(http, database, shop.id, key)
