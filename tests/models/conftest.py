"""Databases on a server that a test may crash."""

import pytest

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from tests.helpers.data_directories import migrated_database


@pytest.fixture
def crashing_url() -> str:
    """A database of the events service, on a server of its own that a test may crash, with its default durability."""
    return migrated_database(EVENTS)


@pytest.fixture
def crashing_inventory_url() -> str:
    """The same for the inventory service."""
    return migrated_database(INVENTORY)
