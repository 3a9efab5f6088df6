"""The storefront's two addresses: the effective quantities as they are, and the stream of their changes.

Answers are made once a version and served as bytes. The address of the stream carries a token of its own, because a
browser opens it directly, past the platform that signs everything else.
"""

import asyncio
import gzip
import hmac
import re
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.inventory.availability.live import REMEMBERED, Live, Shelf
from holdfast.inventory.problems import INVALID_STREAM_TOKEN, error_body
from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify import proxy
from holdfast.inventory.shops.model import Shop
from holdfast.kit.decode import read_query
from holdfast.kit.rest import Door, Header
from holdfast.kit.streams import Streams

AVAILABILITY = "/storefront/availability"
STREAM = "/storefront/stream"

TOKEN_SECONDS = 900
"""How long the address of a stream may be opened. A stream that is open stays open."""

RENEWED = 60
"""Seconds for which everybody is given the same address, so that an answer can be served again as it is."""

BELIEVED = 1.0
"""Seconds for which a signature that was checked is believed: visitors of one second sign alike."""

WORTH_COMPRESSING = 1_000
RETRY = b"retry: 3000\n\n"
CORS: Sequence[Header] = [(b"access-control-allow-origin", b"*")]


class Form(NamedTuple):
    """An answer as it travels."""

    etag: bytes
    content: bytes
    headers: Sequence[Header]
    headers_unchanged: Sequence[Header]


class Answer(NamedTuple):
    """What everybody is answered who asks about a shop, until it changes or the stream's address is renewed."""

    version: int
    window: int
    plain: Form
    compressed: Form


class Storefront:
    """Both addresses."""

    def __init__(self, settings: Settings, live: Live, streams: Streams) -> None:
        self._base_url = settings.base_url
        self._secrets = settings.client_secrets
        self._stream_key = settings.secret.derive("storefront stream")
        self._live = live
        self._streams = streams
        self._answers: dict[int, Answer] = {}
        self._making: dict[tuple[int, int, int], asyncio.Task[Answer]] = {}
        self._verified: dict[bytes, tuple[str, float]] = {}

    def doors(self) -> Mapping[str, ASGIApp]:
        return {
            AVAILABILITY: Door("get_storefront_availability", self._availability, error_body),
            STREAM: Door("stream_storefront", self._stream, error_body, methods=("GET",), headers=CORS),
        }

    async def _availability(self, scope: Scope, receive: Receive, send: Send) -> int:
        now = time.time()
        shop = await self._live.shop(self._asked_by(scope["query_string"], now))
        shelf = await self._live.shelf(shop.id)
        window = int(now) // RENEWED
        answer = self._answers.get(shop.id)
        if answer is None or (answer.version, answer.window) != (shelf.version, window):
            answer = await self._fresh_answer(shop, shelf, window)
        headers = dict(scope["headers"])
        form = answer.compressed if _accepts_gzip(headers.get(b"accept-encoding", b"")) else answer.plain
        known = headers.get(b"if-none-match")
        if known is not None and not {form.etag, b"*"}.isdisjoint(_tags(known)):
            return await _send(send, 304, b"", form.headers_unchanged)
        return await _send(send, 200, form.content, form.headers)

    def _asked_by(self, query: bytes, now: float) -> str:
        """The domain of the shop whose storefront asks. Raises `invalid_signature`."""
        verified = self._verified.get(query)
        if verified and now < verified[1]:
            return verified[0]
        domain = proxy.verify(query, self._secrets, now)
        if len(self._verified) >= REMEMBERED:
            self._verified.clear()
        self._verified[query] = (domain, now + BELIEVED)
        return domain

    async def _fresh_answer(self, shop: Shop, shelf: Shelf, window: int) -> Answer:
        """An answer that everybody who asks meanwhile waits for."""
        key = (shop.id, shelf.version, window)
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.create_task(self._encode(shop, shelf, window))
            making.add_done_callback(lambda _: self._making.pop(key))
        answer = await asyncio.shield(making)
        if len(self._answers) >= REMEMBERED:
            self._answers.clear()
        self._answers[shop.id] = answer
        return answer

    async def _encode(self, shop: Shop, shelf: Shelf, window: int) -> Answer:
        version, variants = shelf.version, shelf.encoded()
        url = msgspec.json.encode(self.stream_url(shop.domain, (window * RENEWED) + TOKEN_SECONDS))
        plain = b'{"shared_inventory_id":%d,"variants":%s,"stream_url":%s}' % (shop.shared_inventory_id, variants, url)
        etag = b"%d-%d" % (version, window)
        as_it_is = compressed = _form(b'"%s"' % etag, plain)
        if len(plain) >= WORTH_COMPRESSING:
            squeezed = await asyncio.to_thread(gzip.compress, plain, 4)
            compressed = _form(b'"%s-gzip"' % etag, squeezed, (b"content-encoding", b"gzip"))
        return Answer(version, window, as_it_is, compressed)

    def stream_url(self, domain: str, expires: int) -> str:
        """The address of a shop's stream, good until a moment in seconds since 1970."""
        query = urlencode({"shop": domain, "exp": expires, "sig": self._signed(domain, str(expires))})
        return f"{self._base_url}{STREAM}?{query}"

    def _signed(self, domain: str, expires: str) -> str:
        return hmac.digest(self._stream_key, f"{domain} {expires}".encode(), sha256).hex()

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> int:
        query = read_query(scope["query_string"])
        domain, expires = query.get("shop", ""), query.get("exp", "")
        expected = self._signed(domain, expires).encode()
        if query.keys() != {"shop", "exp", "sig"} or not hmac.compare_digest(query["sig"].encode(), expected):
            raise INVALID_STREAM_TOKEN()
        if time.time() > int(expires):
            raise INVALID_STREAM_TOKEN("The address of the stream has expired.")
        shelf = await self._live.shelf((await self._live.shop(domain)).id)
        seen = _position(dict(scope["headers"]).get(b"last-event-id", b""))
        if shelf.storefront.position < seen <= shelf.version:
            # What came since the last message changed nothing here.
            seen = shelf.storefront.position
        greeting = RETRY

        async def pending() -> bytes:
            nonlocal seen, greeting
            messages = shelf.storefront.since(seen)
            seen = shelf.storefront.position
            chunk = greeting + (shelf.snapshot() if messages is None else b"".join(messages))
            greeting = b""
            return chunk

        await self._streams.serve("storefront", receive, send, shelf.storefront, pending, headers=CORS)
        return 200


def _position(last_event_id: bytes) -> int:
    """The version a reader has seen; -1 for one who has seen nothing."""
    return int(last_event_id) if re.fullmatch(rb"[0-9]{1,18}", last_event_id) else -1


def _form(etag: bytes, content: bytes, *encoding: Header) -> Form:
    always: Sequence[Header] = (
        (b"cache-control", b"private, no-cache"),
        (b"vary", b"accept-encoding"),
        (b"etag", etag),
        *encoding,
    )
    kind: Sequence[Header] = (
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    )
    return Form(etag, content, (*always, *kind), always)


@lru_cache(256)
def _accepts_gzip(header: bytes) -> bool:
    """Whether gzip is among the encodings accepted, and not with `q=0`."""
    for each in header.decode("latin-1").lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() in {"gzip", "*"}:
            return not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight)
    return False


def _tags(header: bytes) -> Sequence[bytes]:
    return [tag.strip().removeprefix(b"W/") for tag in header.split(b",")]


async def _send(send: Send, status: int, content: bytes, headers: Sequence[Header]) -> int:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
    return status
