"""The services that are held to the protocol: each opens behind an address, and hands out a key for it."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp

from holdfast.cli import INVENTORY
from holdfast.kit import embedded
from tests.conformance import fixtures
from tests.inventory.support import running, unlimited
from tests.kit.mcp import pantry
from tests.kit.mcp.pantry import Pantry

Target = Callable[[str], AbstractAsyncContextManager[tuple[ASGIApp, str]]]
"""`(base_url) -> (application, key)`, open for as long as the block lasts."""


@contextlib.asynccontextmanager
async def kit(base_url: str) -> AsyncGenerator[tuple[ASGIApp, str]]:
    """The agent endpoint of the kit, over the pantry of its tests and what the suite expects by name."""
    url = embedded.database_url(embedded.scratch_directory(), "pantry")
    pantry.furnish(url)
    service = Pantry(
        url,
        base_url=base_url,
        operations=(*pantry.OPERATIONS, *fixtures.OPERATIONS),
        documents=(*pantry.DOCUMENTS, *fixtures.DOCUMENTS),
        templates=(*pantry.TEMPLATES, *fixtures.TEMPLATES),
    )
    app = service.service.app(background=False)
    async with app.otherwise.router.lifespan_context(app.otherwise):
        yield app, await service.key("read_jars", "write_jars")


@contextlib.asynccontextmanager
async def inventory(base_url: str) -> AsyncGenerator[tuple[ASGIApp, str]]:
    """The inventory service, with a shop that has a pool."""
    directory = embedded.scratch_directory()
    settings = unlimited(embedded.database_url(directory, "inventory"), directory, base_url=base_url)
    INVENTORY.migrate(settings.url)
    async with running(settings) as service:
        shop = await service.shop()
        await shop.golden()
        yield service.app, shop.key


TARGETS: dict[str, Target] = {"kit": kit, "inventory": inventory}
