"""Agents as they are on the wire: messages, headers and open streams, without a client that tidies them up."""

import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx2
from starlette.types import ASGIApp

from tests.helpers.exchange import Exchange, Header, Stream, http_scope
from tests.kit.mcp.pantry import Pantry

STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
JSON: Header = (b"content-type", b"application/json")
BOTH: Header = (b"accept", b"application/json, text/event-stream")
EVENTS: Header = (b"accept", b"text/event-stream")


def begin_request(app: ASGIApp, method: str, headers: Sequence[Header], body: bytes = b"") -> Exchange:
    """A request to the endpoint for agents."""
    return Exchange(app, http_scope(method, "/mcp", headers, "pantry.test"), [{"type": "http.request", "body": body}])


class Agent:
    """An agent that talks to the endpoint in one version of the protocol, with a key or without."""

    def __init__(self, app: ASGIApp, key: str | None = None, version: str = "2025-11-25") -> None:
        self.app = app
        self.key = key
        self.version = version
        self._ids = itertools.count(1)

    def headers(self, body: Any = None) -> list[Header]:
        """What the version wants in the headers of a request."""
        headers = [JSON, BOTH, (b"mcp-protocol-version", self.version.encode())]
        if self.key:
            headers.append((b"authorization", f"Bearer {self.key}".encode()))
        match body:
            case {"method": str(method), "params": {"name": str(subject)} | {"uri": str(subject)}}:
                mirrored = [(b"mcp-method", method.encode()), (b"mcp-name", subject.encode())]
            case {"method": str(method)}:
                mirrored = [(b"mcp-method", method.encode())]
            case _:
                mirrored = []
        return [*headers, *mirrored] if self.version == STATELESS else headers

    def request(self, method: str, params: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
        """A request as the version has it."""
        if self.version == STATELESS:
            params = {"_meta": META, **(params or {})}
        optional = {} if params is None else {"params": params}
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, **optional, **members}

    async def post(self, body: Any, headers: Sequence[Header] | None = None) -> httpx2.Response:
        """Post a body, as it is when it is bytes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent_headers = self.headers(body) if headers is None else headers
        return await begin_request(self.app, "POST", sent_headers, content).response()

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> httpx2.Response:
        return await self.post(self.request(method, params))

    async def result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request that succeeds."""
        response = await self.ask(method, params)
        assert response.status_code == 200, response.text
        return response.json()["result"]

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of calling a tool."""
        return await self.result("tools/call", {"name": name, "arguments": arguments})

    async def error(self, method: str, params: dict[str, Any] | None = None, *, status: int = 200) -> dict[str, Any]:
        """The error of a request that is refused by JSON-RPC."""
        return error_of(await self.ask(method, params), status)

    async def open(self, method: str, headers: Sequence[Header] | None = None, body: Any = None) -> Stream:
        """Open a stream of events."""
        sent_headers = self.headers(body) if headers is None else headers
        exchange = begin_request(self.app, method, sent_headers, b"" if body is None else json.dumps(body).encode())
        return Stream(exchange, await exchange.piece())

    async def listen(self, **notifications: Any) -> Stream:
        """Subscribe, in 2026-07-28."""
        return await self.open("POST", body=self.request("subscriptions/listen", {"notifications": notifications}))

    async def get(self, *headers: Header) -> Stream:
        """Open the stream of the handshake era."""
        return await self.open("GET", [*self.headers(), *headers])


UPDATED = "notifications/resources/updated"
LISTED = "notifications/resources/list_changed"


def error_of(response: httpx2.Response, status: int) -> dict[str, Any]:
    """The error in a JSON-RPC answer."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body["jsonrpc"] == "2.0"
    assert set(body) == {"jsonrpc", "id", "error"}
    return body["error"]


def problem_of(result: dict[str, Any]) -> dict[str, Any]:
    """What a tool says that could not do its work."""
    assert result["isError"] is True
    assert "structuredContent" not in result
    (content,) = result["content"]
    assert content["type"] == "text"
    return json.loads(content["text"])


class Kitchen:
    """A pantry that is open."""

    def __init__(self, pantry: Pantry, app: ASGIApp) -> None:
        self.pantry = pantry
        self.app = app
        self.stranger = Agent(app)

    async def agent(self, *scopes: str, version: str = "2025-11-25") -> Agent:
        """An agent of a new organizer, with a key of these scopes."""
        return Agent(self.app, await self.pantry.key(*scopes), version)

    async def revoke(self, agent: Agent) -> None:
        """Take an agent's key away."""
        await self.pantry.change_key(agent.key, "delete from jar_keys where hash = %(hash)s")

    async def strip(self, agent: Agent) -> None:
        """Take an agent's scopes away."""
        await self.pantry.change_key(agent.key, "update jar_keys set scopes = '{}' where hash = %(hash)s")


@contextlib.asynccontextmanager
async def open_kitchen(pantry: Pantry) -> AsyncGenerator[Kitchen]:
    """Serve a pantry in this process."""
    app = pantry.service.app(background=False)
    async with app.lifespan():
        yield Kitchen(pantry, app)
