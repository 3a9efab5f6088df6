"""Fixtures of the inventory tests: a database of its own for each test, the service, a shop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.inventory.settings import Settings
from tests.databases import scratch_database
from tests.inventory.support import Inventory, Shop, running, unlimited


@pytest.fixture
def settings(inventory_url: str, tmp_path: Path) -> Settings:
    """The settings a test runs under."""
    return unlimited(inventory_url, tmp_path)


@pytest.fixture
async def inventory(settings: Settings) -> AsyncIterator[Inventory]:
    """The inventory service in this process, without background work."""
    async with running(settings) as inventory:
        yield inventory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_inventory(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Inventory]:
    """The inventory service for all tests of a module, which see that they change nothing of what they share."""
    with scratch_database(inventory_template, "shared") as url:
        async with running(unlimited(url, tmp_path_factory.mktemp("data"))) as inventory:
            yield inventory


@pytest.fixture(scope="session")
async def common_inventory(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Inventory]:
    """The inventory service of all tests of a worker that see it only through a shop of their own."""
    with scratch_database(inventory_template, "common") as url:
        async with running(unlimited(url, tmp_path_factory.mktemp("data"))) as inventory:
            yield inventory


@pytest.fixture
def inventory_of_shop(request: pytest.FixtureRequest) -> Inventory:
    """Where the shop of a test is: in a service of this test's own if it names that, else in the common one."""
    names = {"inventory", "settings", "inventory_url"}
    return request.getfixturevalue("common_inventory" if names.isdisjoint(request.fixturenames) else "inventory")


@pytest.fixture
async def shop(inventory_of_shop: Inventory) -> Shop:
    """A shop whose key has all scopes. Its pools have ids of their own; with `inventory` they begin at 1."""
    return await inventory_of_shop.shop()
