"""A scene of the tests of a module: a shop with pools, which is stored once and restored for each test."""

from collections.abc import Awaitable, Callable

import pytest

from tests.helpers.databases import State, shared_or_own, state_of
from tests.helpers.inventory_service import Inventory, Shop

Prepare = Callable[[Shop], Awaitable[Shop]]
"""Gives a shop its pools, entries and holds. A module that uses `scene` has a fixture `prepare` of this type."""


@pytest.fixture(scope="module")
async def first_scene(prepare: Prepare, module_inventory: Inventory, inventory_template: str) -> tuple[Shop, State]:
    """A shop with these pools, and what the database then holds."""
    await module_inventory.empty(inventory_template)
    shop = await prepare(await module_inventory.create_shop())
    return shop, state_of(module_inventory.database.url)


@pytest.fixture
async def restored_scene(first_scene: tuple[Shop, State], emptied_inventory: Inventory) -> Shop:
    """The same shop, as if it were new."""
    shop, state = first_scene
    await emptied_inventory.restore(state)
    return shop


@pytest.fixture
async def own_scene(prepare: Prepare, shop: Shop) -> Shop:
    """Such a shop of the test's own."""
    return await prepare(shop)


@pytest.fixture
def scene(request: pytest.FixtureRequest, inventory_template: str) -> Shop:
    """The shop of a test."""
    return shared_or_own(request, inventory_template, shared="restored_scene", unshared="own_scene")
