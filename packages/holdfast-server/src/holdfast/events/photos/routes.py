"""The routes of public photos, `/media/…`, and of uploads if the store is the local disk, `/uploads/…`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import structlog
from starlette.types import Message, Receive

from holdfast.events.photos.model import content_type_of, media_type, upload_name
from holdfast.events.storage.disk import DiskStore
from holdfast.events.storage.store import CACHE_CONTROL, OpenedFile, Store
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import BAD_REQUEST, NOT_FOUND, Problem
from holdfast.kit.http.handler import NO_STORE, NOSNIFF, Access, Handler, Header, Reply, Request, envelope, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits

UPLOAD_TIMEOUT_SECONDS = 120
"""The most seconds of an upload: 5 MB at a third of a megabit per second."""

ANY_ORIGIN: Header = (b"access-control-allow-origin", b"*")

PHOTO_HEADERS: Sequence[Header] = (
    ANY_ORIGIN,
    (b"cache-control", CACHE_CONTROL.encode()),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"cross-origin"),
)

PREFLIGHT: Sequence[Header] = (
    ANY_ORIGIN,
    (b"access-control-allow-methods", b"PUT"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-max-age", b"86400"),
)
"""CORS headers: pages of any site may upload, because the signed address is the only credential."""

log = structlog.get_logger()


class SentReply(Reply):
    """A reply that has been sent already, chunk by chunk."""

    async def send(self, request: Request) -> None:
        pass


Respond = Callable[[Caller, Request], Awaitable[Reply]]


def routes(store: Store, limits: Limits) -> list[Route]:
    """The route of photos, and of uploads if the store is the local disk."""
    media = Handler(Access("get_photo"), limits, _photo_handler(store), envelope(Problem.body))
    if not isinstance(store, DiskStore):
        return [Route("/media/{key:path}", media)]
    uploads = Handler(
        Access("upload_photo"),
        limits,
        _upload_handler(store),
        envelope(Problem.body, ANY_ORIGIN),
        methods=("OPTIONS", "PUT"),
    )
    return [Route("/media/{key:path}", media), Route("/uploads/{name:path}", uploads)]


def _photo_handler(store: Store) -> Respond:
    async def show(caller: Caller, request: Request) -> Reply:
        name = request.path.removeprefix("/media/")
        content_type = media_type(name)
        if content_type is None:
            raise NOT_FOUND("No photo has this address.")
        etag = f'"{name}"'.encode()
        if etag in request.headers.get(b"if-none-match", b""):
            return Reply(304, headers=[*PHOTO_HEADERS, (b"etag", etag)])
        async with store.open(name) as photo:
            if photo is None:
                raise NOT_FOUND("No photo has this address.")
            about = [(b"content-type", content_type.encode()), (b"content-length", str(photo.size).encode())]
            headers = [NOSNIFF, *PHOTO_HEADERS, (b"etag", etag), *about]
            await request.send({"type": "http.response.start", "status": 200, "headers": headers})
            if request.method == "GET":
                await _send_file(photo, request)
            else:
                await request.send({"type": "http.response.body", "body": b""})
        return SentReply(200)

    return show


async def _send_file(photo: OpenedFile, request: Request) -> None:
    try:
        async for chunk in photo.chunks:
            await request.send({"type": "http.response.body", "body": chunk, "more_body": True})
    except Problem as problem:
        # The status is sent already. The body stays shorter than its Content-Length, so the client sees the error.
        log.warning("a photo broke off on its way", error=problem.message)
    else:
        await request.send({"type": "http.response.body", "body": b""})


def _upload_handler(store: DiskStore) -> Respond:
    async def take(caller: Caller, request: Request) -> Reply:
        if request.method == "OPTIONS":
            return Reply(204, headers=[NO_STORE, *PREFLIGHT])
        key = request.path.replace("/uploads/", "photos/", 1)
        content_type = content_type_of(key)
        if content_type is None:
            raise NOT_FOUND("No upload has this address.")
        store.admit(
            upload_name(key),
            read_query(request.query),
            request.headers.get(b"content-type", b"").decode("latin-1"),
            request.headers.get(b"content-length", b"").decode("latin-1"),
        )
        await store.receive(upload_name(key), _body(request.receive))
        return Reply(200, headers=[NO_STORE, ANY_ORIGIN])

    return take


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    """The chunks of the body. The HTTP server checks that it has the announced length."""
    until = asyncio.get_running_loop().time() + UPLOAD_TIMEOUT_SECONDS
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
