"""The databases of both services, and a server that a test may crash."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from holdfast.events.product import EVENTS
from holdfast.inventory.product import INVENTORY
from holdfast.kit import embedded
from tests.inventory.conftest import inventory_template, inventory_url
from tests.support import template_database

__all__ = ["inventory_template", "inventory_url"]


@pytest.fixture(scope="session")
def crashing_server() -> str:
    """A PostgreSQL of its own, with its default durability."""
    server = embedded.database_url(embedded.scratch_directory(), "postgres")
    with psycopg.connect(make_conninfo(server, user="postgres"), autocommit=True) as connection:
        connection.execute("alter role holdfast createdb")
    return server


@pytest.fixture
def crashing_url(crashing_server: str) -> Iterator[str]:
    """A database of the events service, on a server that a test may crash."""
    with template_database(crashing_server, "events", EVENTS) as url:
        yield url


@pytest.fixture
def crashing_inventory_url(crashing_server: str) -> Iterator[str]:
    """A database of the inventory service, on a server that a test may crash."""
    with template_database(crashing_server, "inventory", INVENTORY) as url:
        yield url
