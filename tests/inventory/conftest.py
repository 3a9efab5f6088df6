"""Fixtures of the inventory tests: the service, its databases, shops, and scenes with the platform."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from holdfast.inventory.settings import Settings
from tests.helpers.databases import clone, scratch_database, shared_or_own
from tests.helpers.inventory_service import Inventory, Shop, running_inventory, unlimited
from tests.helpers.platform_shop import PlatformSource, SharedPlatform, open_shared_platform
from tests.inventory.sync.sync_scene import SyncScene, open_installed_shop


@pytest.fixture
def settings(inventory_url: str, tmp_path: Path) -> Settings:
    """The settings a test runs under."""
    return unlimited(inventory_url, tmp_path)


@pytest.fixture
async def own_inventory(settings: Settings) -> AsyncIterator[Inventory]:
    """The inventory service in this process, without background work, with a database of this test's own."""
    async with running_inventory(settings) as inventory:
        yield inventory


@pytest.fixture(scope="module")
async def module_inventory(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Inventory]:
    """The inventory service of the tests of a module."""
    with clone(inventory_template) as url:
        async with running_inventory(unlimited(url, tmp_path_factory.mktemp("data"))) as inventory:
            yield inventory


@pytest.fixture
async def emptied_inventory(module_inventory: Inventory, inventory_template: str) -> Inventory:
    """The service of a module, with a database as if it were new."""
    await module_inventory.empty(inventory_template)
    return module_inventory


@pytest.fixture
def new_inventory(request: pytest.FixtureRequest, inventory_template: str) -> Inventory:
    """A service as if it were new: one of the test's own if it names that or its settings, else one of the module."""
    names = ("own_inventory", "settings", "inventory_url")
    return shared_or_own(request, inventory_template, *names, shared="emptied_inventory", unshared="own_inventory")


@pytest.fixture
def inventory(new_inventory: Inventory) -> Inventory:
    """The service of a test, unless a module says otherwise."""
    return new_inventory


@pytest.fixture(scope="module")
async def shared_platform(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SharedPlatform]:
    """A service and the platform, for the tests of a module."""
    with clone(inventory_template) as url:
        settings = unlimited(url, tmp_path_factory.mktemp("data"))
        async with open_shared_platform(settings, inventory_template) as shared:
            yield shared


@pytest.fixture
def platform_source(request: pytest.FixtureRequest, inventory_template: str) -> PlatformSource:
    """What a scene with the platform is opened from: the settings if the test names them, else what a module shares."""
    names = ("own_inventory", "inventory", "settings", "inventory_url")
    return shared_or_own(request, inventory_template, *names, shared="shared_platform", unshared="settings")


@pytest.fixture
async def scene(platform_source: PlatformSource) -> AsyncGenerator[SyncScene]:
    """A shop that has the app, with 50 singles, 8 6-packs and 4 12-packs of honey at the platform, and no pool."""
    async with open_installed_shop(platform_source) as scene:
        yield scene


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_inventory(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Inventory]:
    """The inventory service for all tests of a module, which see that they change nothing of what they share."""
    with scratch_database(inventory_template, "shared") as url:
        async with running_inventory(unlimited(url, tmp_path_factory.mktemp("data"))) as inventory:
            yield inventory


@pytest.fixture(scope="session")
async def common_inventory(
    inventory_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Inventory]:
    """The inventory service of all tests of a worker that see it only through a shop of their own."""
    with scratch_database(inventory_template, "common") as url:
        async with running_inventory(unlimited(url, tmp_path_factory.mktemp("data"))) as inventory:
            yield inventory


@pytest.fixture
def inventory_of_shop(request: pytest.FixtureRequest) -> Inventory:
    """Where the shop of a test is: in a service of this test's own if it names that, else in the common one."""
    names = {"inventory", "settings", "inventory_url"}
    return request.getfixturevalue("common_inventory" if names.isdisjoint(request.fixturenames) else "inventory")


@pytest.fixture
async def shop(inventory_of_shop: Inventory) -> Shop:
    """A shop whose key has all scopes. Its pools have ids of their own; with `inventory` they begin at 1."""
    return await inventory_of_shop.create_shop()
