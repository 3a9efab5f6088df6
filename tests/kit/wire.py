"""Requests as they are on the wire, and what a refusal looks like there."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2

from tests.support import Client, Service

Header = tuple[bytes, bytes]
Message = dict[str, Any]


def code_of(response: httpx2.Response, status: int) -> str:
    """The code of a refusal, which has the envelope."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert all(isinstance(body[member], str) and body[member] for member in ("error", "code", "hint"))
    return body["code"]


def http_scope(
    method: str, path: str, headers: Sequence[Header], host: str = "events.test", **scope: Any
) -> dict[str, Any]:
    """What a server says of a request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", host.encode()), *headers],
        "client": ("127.0.0.1", 1234),
        "server": (host, 80),
        **scope,
    }


async def request_directly(
    service: Service,
    method: str,
    path: str,
    *,
    headers: Sequence[Header] = (),
    messages: Sequence[Message] = ({"type": "http.request", "body": b""},),
    **scope: Any,
) -> httpx2.Response:
    """Hand a request to the application as a server would, without a client that tidies it up."""
    arriving = iter(messages)
    answer: list[Message] = []

    async def receive() -> Message:
        message = next(arriving, None)
        if message is None:
            await asyncio.Event().wait()
        assert message
        return message

    async def send(message: Any) -> None:
        answer.append(message)

    async with asyncio.timeout(5):
        await service.app(http_scope(method, path, headers, **scope), receive, send)
    content = b"".join(message.get("body", b"") for message in answer[1:])
    return httpx2.Response(answer[0]["status"], headers=answer[0]["headers"], content=content)


def with_key(client: Client, *headers: Header) -> list[Header]:
    assert client.key
    return [(b"x-api-key", client.key.encode()), *headers]
