"""The services that are held to the protocol: each opens behind an address, and hands out a key for it."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager

import psycopg
from starlette.types import ASGIApp

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.postgres import bundled
from tests.conformance import fixtures
from tests.helpers import events_service as events_support
from tests.helpers import inventory_service as inventory_support
from tests.helpers.data_directories import migrated_database, scratch_directory
from tests.kit.mcp import pantry
from tests.kit.mcp.pantry import Pantry

Target = Callable[[str], AbstractAsyncContextManager[tuple[ASGIApp, str]]]
"""`(base_url) -> (application, key)`, open for as long as the block lasts."""


@contextlib.asynccontextmanager
async def kit(base_url: str) -> AsyncGenerator[tuple[ASGIApp, str]]:
    """The agent endpoint of the kit, over the pantry of its tests and what the suite expects by name."""
    url = bundled.database_url(scratch_directory(), "pantry")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(pantry.SCHEMA)
    service = Pantry(
        url,
        base_url=base_url,
        operations=(*pantry.OPERATIONS, *fixtures.OPERATIONS),
        documents=(*pantry.DOCUMENTS, *fixtures.DOCUMENTS),
        templates=(*pantry.TEMPLATES, *fixtures.TEMPLATES),
    )
    app = service.service.app(background=False)
    async with app.lifespan():
        yield app, await service.key("read_jars", "write_jars")


@contextlib.asynccontextmanager
async def inventory(base_url: str) -> AsyncGenerator[tuple[ASGIApp, str]]:
    """The inventory service, with a shop that has a pool."""
    directory = scratch_directory()
    url = migrated_database(INVENTORY, directory)
    settings = inventory_support.unlimited(url, directory, base_url=base_url)
    async with inventory_support.running_inventory(settings) as service:
        shop = await service.create_shop()
        await shop.create_golden_pool()
        yield service.app, shop.key


@contextlib.asynccontextmanager
async def events(base_url: str) -> AsyncGenerator[tuple[ASGIApp, str]]:
    """The events service, with an organizer that has an event, and a person registered for it."""
    directory = scratch_directory()
    url = migrated_database(EVENTS, directory)
    settings = events_support.unlimited(url, directory).model_copy(update={"base_url": base_url})
    async with events_support.running_events(settings) as service:
        organizer = await service.organizer()
        event = await organizer.create_event()
        await organizer.register(event["id"], email="ann@example.com")
        await service.settle()
        assert organizer.key
        yield service.app, organizer.key


TARGETS: dict[str, Target] = {"kit": kit, "inventory": inventory, "events": events}
