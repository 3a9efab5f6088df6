"""Databases on a server that a test may crash."""

import pytest

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.postgres import bundled
from tests.helpers.data_directories import scratch_directory


@pytest.fixture
def crashing_url() -> str:
    """A database of the events service, on a server of its own that a test may crash, with its default durability."""
    url = bundled.database_url(scratch_directory(), "events")
    EVENTS.migrate(url)
    return url


@pytest.fixture
def crashing_inventory_url() -> str:
    """The same for the inventory service."""
    url = bundled.database_url(scratch_directory(), "inventory")
    INVENTORY.migrate(url)
    return url
