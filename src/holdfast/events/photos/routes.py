"""Photos as the public sees them, at `/media/…`, and uploads where the local disk keeps them, at `/uploads/…`."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import structlog
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from holdfast.events.photos import store
from holdfast.events.photos.disk import DiskStore
from holdfast.events.photos.model import content_type_of, upload_name
from holdfast.events.settings import Settings
from holdfast.kit.decode import read_query
from holdfast.kit.problems import BAD_REQUEST, NOT_FOUND, ErrorBody, Problem
from holdfast.kit.rest import Answer, Door, Header, respond

UPLOAD_SECONDS = 120
"""How long an upload may be on its way: 5 MB at a third of a megabit a second."""

ANYWHERE: Header = (b"access-control-allow-origin", b"*")

SEEN: Sequence[Header] = (
    ANYWHERE,
    (b"cache-control", store.CACHED.encode()),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"cross-origin"),
    (b"x-content-type-options", b"nosniff"),
)

PREFLIGHT: Sequence[Header] = (
    ANYWHERE,
    (b"access-control-allow-methods", b"PUT"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-max-age", b"86400"),
)
"""Pages of other sites may upload: the address says all there is to be allowed."""

log = structlog.get_logger()


def routes(settings: Settings, error_body: ErrorBody = Problem.body) -> list[BaseRoute]:
    """Where photos are seen; and where they are uploaded, unless another store takes them."""
    kept_in = store.of(settings)
    media = Door("get_photo", _showing(kept_in), error_body)
    if not isinstance(kept_in, DiskStore):
        return [Route("/media/{key:path}", media)]
    uploads = Door("upload_photo", _taking(kept_in), error_body, methods=("OPTIONS", "PUT"), headers=[ANYWHERE])
    return [Route("/media/{key:path}", media), Route("/uploads/{name:path}", uploads)]


def _showing(kept_in: store.Store) -> Answer:
    async def show(scope: Scope, receive: Receive, send: Send) -> int:
        key = scope["path"].removeprefix("/media/")
        content_type = content_type_of(key)
        if content_type is None:
            raise NOT_FOUND("No photo has this address.")
        etag = f'"{key}"'.encode()
        if etag in dict(scope["headers"]).get(b"if-none-match", b""):
            await send({"type": "http.response.start", "status": 304, "headers": [*SEEN, (b"etag", etag)]})
            await send({"type": "http.response.body", "body": b""})
            return 304
        async with kept_in.open(key) as photo:
            if photo is None:
                raise NOT_FOUND("No photo has this address.")
            about = [(b"content-type", content_type.encode()), (b"content-length", str(photo.size).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": [*SEEN, (b"etag", etag), *about]})
            if scope["method"] == "GET":
                await _pass_on(photo, send)
            else:
                await send({"type": "http.response.body", "body": b""})
        return 200

    return show


async def _pass_on(photo: store.Opened, send: Send) -> None:
    try:
        async for chunk in photo.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except Problem as problem:
        # Too late to say so: what was begun stays incomplete, which its length tells.
        log.warning("a photo broke off on its way", error=problem.message)
    else:
        await send({"type": "http.response.body", "body": b""})


def _taking(kept_in: DiskStore) -> Answer:
    async def take(scope: Scope, receive: Receive, send: Send) -> int:
        if scope["method"] == "OPTIONS":
            await respond(send, 204, b"", PREFLIGHT)
            return 204
        key = scope["path"].replace("/uploads/", "photos/", 1)
        content_type = content_type_of(key)
        if content_type is None:
            raise NOT_FOUND("No upload has this address.")
        headers = dict(scope["headers"])
        kept_in.admit(
            upload_name(key),
            read_query(scope["query_string"]),
            headers.get(b"content-type", b"").decode("latin-1"),
            headers.get(b"content-length", b"").decode("latin-1"),
        )
        await kept_in.receive(upload_name(key), _body(receive))
        await respond(send, 200, b"", [ANYWHERE])
        return 200

    return take


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    """What is sent, piece by piece; the server sees to it that it has the length it announced."""
    until = asyncio.get_running_loop().time() + UPLOAD_SECONDS
    message: Message = {"more_body": True}
    while message.get("more_body"):
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError as error:
            raise BAD_REQUEST("The upload took too long.") from error
        if message["type"] == "http.disconnect":
            raise BAD_REQUEST("The client went away before the upload was complete.")
        yield message.get("body", b"")
