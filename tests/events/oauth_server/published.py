"""A site that publishes the metadata document of a client, over TLS, at a name of its own."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from holdfast.kit.outbound.requests import OutboundClient
from tests.helpers.certificates import Authority
from tests.helpers.outside_servers import LOCAL, OutsideServer, Script, ok_answer, outside_server, raw_answer

HOST = "app.example"


class PublishedSite:
    """The site, and an HTTP client that may reach it though it is not public.

    about     what the document says at first
    answer    what it answers
    others    what it answers at other paths
    """

    def __init__(self, server: OutsideServer, outbound: OutboundClient, host: str, path: str) -> None:
        self.server = server
        self.outbound = outbound
        self.origin = f"https://{host}:{server.port}"
        self.address = f"{self.origin}{path}"
        self.others: dict[str, Script] = {}
        self.about: dict[str, Any] = {
            "client_id": self.address,
            "client_name": "Example App",
            "redirect_uris": ["https://app.example/done", "http://localhost/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
        }
        self.answer: Script = raw_answer("404 Not Found\r\nContent-Length: 0")
        self.says()

    def requests(self, path: str) -> int:
        """How often a path was requested."""
        return sum(request.split()[1] == path for request in self.server.requests)

    def publishes(self, path: str, document: object, *headers: str) -> None:
        """Answer with a JSON document at another path."""
        self.others[path] = ok_answer(json.dumps(document).encode(), *headers, content_type="application/json")

    def says(self, *headers: str, **changes: Any) -> None:
        """What the document is from now on; None leaves a member out."""
        about = {name: value for name, value in {**self.about, **changes}.items() if value is not None}
        body = json.dumps(about).encode()
        head = ["200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
        self.answer = raw_answer("\r\n".join(head), body)


@contextlib.asynccontextmanager
async def publish_site(directory: Path, host: str = HOST, path: str = "/client.json") -> AsyncGenerator[PublishedSite]:
    """The site, for as long as the block lasts. `directory`: where its certificate is written."""
    authority = Authority(directory)

    async def answer(writer: asyncio.StreamWriter, request: str) -> None:
        await site.others.get(request.split()[1], site.answer)(writer, request)

    async def look_up(host: str, port: int) -> Sequence[str]:
        return [LOCAL]

    async with outside_server(answer, authority.issue(host)) as server:
        trust, exempt = authority.believed(), [(LOCAL, server.port)]
        site = PublishedSite(server, OutboundClient(seconds=5, exempt=exempt, trust=trust, look_up=look_up), host, path)
        yield site
