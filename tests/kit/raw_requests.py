"""Requests as they are on the wire, and what a refusal looks like there."""

from collections.abc import Sequence
from typing import Any

import httpx2

from tests.helpers.events_service import Client, Service
from tests.helpers.exchange import NO_BODY, Exchange, Header, Message, http_scope


def code_of(response: httpx2.Response, status: int) -> str:
    """The code of a refusal, which has the envelope."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert all(isinstance(body[member], str) and body[member] for member in ("error", "code", "hint"))
    return body["code"]


async def request_directly(
    service: Service,
    method: str,
    path: str,
    *,
    headers: Sequence[Header] = (),
    messages: Sequence[Message] = (NO_BODY,),
    **scope: Any,
) -> httpx2.Response:
    """Hand a request to the application as a server would, without a client that tidies it up."""
    return await Exchange(service.app, http_scope(method, path, headers, **scope), messages).response()


def with_key(client: Client, *headers: Header) -> list[Header]:
    assert client.key
    return [(b"x-api-key", client.key.encode()), *headers]
