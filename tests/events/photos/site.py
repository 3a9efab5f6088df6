"""A site outside that has pictures."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from tests.helpers.events_service import Service
from tests.helpers.outside_servers import OutsideServer, Script, client_reaching, ok_answer, outside_server, raw_answer


class PhotoSite:
    """Answers by path. What is not there is 404."""

    def __init__(self) -> None:
        self.server: OutsideServer
        self._scripts: dict[str, Script] = {}

    @property
    def request_count(self) -> int:
        """How many requests there were."""
        return len(self.server.requests)

    def publish(self, path: str, content: bytes | Script, content_type: str = "image/jpeg") -> str:
        """Put a file on the site, or whatever a script does; its address."""
        self._scripts[path] = content if callable(content) else ok_answer(content, content_type=content_type)
        return self.server.url.rstrip("/") + path

    async def answer(self, writer: asyncio.StreamWriter, request: str) -> None:
        script = self._scripts.get(request.split()[1]) or raw_answer("404 Not Found\r\nContent-Length: 0")
        await script(writer, request)


@asynccontextmanager
async def site_of(service: Service) -> AsyncGenerator[PhotoSite]:
    """A site that a service may download from though it is not public."""
    site = PhotoSite()
    async with outside_server(site.answer) as site.server:
        resources = service.database.resources
        service.database.resources = replace(resources, outbound=client_reaching(site.server))
        yield site
