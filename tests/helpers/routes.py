"""A service with all that it can offer, and every path of it."""

import contextlib
import re
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.http.application import Application
from holdfast.kit.process.service_process import ServiceProcess
from tests.helpers import events_service as events
from tests.helpers import inventory_service as inventory


class ServiceUnderTest(NamedTuple):
    """A service, every path of it, and the key of an organizer or a shop."""

    app: Application
    http: httpx2.AsyncClient
    paths: list[str]
    key: str

    async def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return await self.http.request(method, path, follow_redirects=False, **options)


@contextlib.asynccontextmanager
async def serve_all_routes(
    name: str, databases: dict[str, str], data_dir: Path, **limits: int
) -> AsyncGenerator[ServiceUnderTest]:
    """A service with all that it can offer, and its rate limits out of the way, or as they are given."""
    url = databases[name]
    if name == "events":
        settings = events.unlimited(url, data_dir).model_copy(update={"oauth_builtin": True, **limits})
        async with events.running_events(settings) as service:
            # An organizer may be registered before the limits count, which a process keeps for itself.
            async with events.running_events(events.unlimited(url, data_dir)) as before:
                key = (await before.organizer()).key or ""
            yield ServiceUnderTest(service.app, service.http, all_paths(EVENTS, service.database), key)
    else:
        more = {"client_id": "an-app", "client_secret": "a secret of 32 characters or more", **limits}
        async with inventory.running_inventory(inventory.unlimited(url, data_dir, **more)) as service:
            key = (await service.create_shop()).key
            yield ServiceUnderTest(service.app, service.http, all_paths(INVENTORY, service.database), key)


def all_paths(product: ServiceProcess[Any, Any], database: Any) -> list[str]:
    """Every path of a service, with an id in the place of each field that nothing has."""
    built = product.build(database)
    known: Iterable[str] = (*(route.path for route in built.all_routes()), "/nothing")
    return sorted({re.sub(r"\{[^}]*\}", "4711", path) for path in known})
