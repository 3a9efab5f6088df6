"""The two addresses that storefronts read: the effective quantities as they are, and a stream of their changes.

An answer is encoded once a version and then sent as bytes. The address of the stream carries a token of its own,
because a browser opens it directly, without the platform, which signs all other requests.
"""

import asyncio
import gzip
import re
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from cachetools import LRUCache
from starlette.types import ASGIApp

from holdfast.inventory.availability.live import CAPACITY, Live
from holdfast.inventory.availability.view import ShopView
from holdfast.inventory.problems import INVALID_STREAM_TOKEN, error_body
from holdfast.inventory.resources import Resources
from holdfast.inventory.shopify import proxy
from holdfast.inventory.shops.model import Shop
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Header, Reply, Request, envelope, read_query
from holdfast.kit.limits import Limits, address
from holdfast.kit.streams import EventStream, Owner, Streams

AVAILABILITY = "/storefront/availability"
STREAM = "/storefront/stream"

TOKEN_SECONDS = 900
"""How long the address of a stream may be opened. A stream that is open stays open."""

WINDOW_SECONDS = 60
"""Seconds for which all answers carry the same address, so that they can be cached."""

SIGNATURE_SECONDS = 1.0
"""Seconds for which a signature is not checked again: the requests of one second carry the same one."""

WORTH_COMPRESSING = 1_000
RETRY = b"retry: 3000\n\n"
CORS: Header = (b"access-control-allow-origin", b"*")


class Encoding(NamedTuple):
    """An answer in one content encoding: as a whole, and for clients that have it already."""

    etag: bytes
    whole: Reply
    unchanged: Reply


class CachedAnswer(NamedTuple):
    """The answer about a shop, valid until its version or the window of the stream's address changes."""

    version: int
    window: int
    plain: Encoding
    compressed: Encoding


class Storefront:
    """The handlers of both addresses.

    base_url    the service's address, without a slash at the end
    """

    def __init__(self, base_url: str, resources: Resources, limits: Limits, live: Live, streams: Streams) -> None:
        self._base_url = base_url
        self._secrets = resources.client_secrets
        self._signer = resources.secret.signer("storefront stream")
        self._limits = limits
        self._live = live
        self._streams = streams
        self._answers: LRUCache[int, CachedAnswer] = LRUCache(CAPACITY)
        self._encoding: dict[tuple[int, int, int], asyncio.Task[CachedAnswer]] = {}
        self._domains: LRUCache[bytes, tuple[str, float]] = LRUCache(CAPACITY)

    def handlers(self) -> Mapping[str, ASGIApp]:
        availability = Access("get_storefront_availability")
        stream = Access("stream_storefront")
        return {
            AVAILABILITY: Handler(availability, self._limits, self._availability, envelope(error_body)),
            STREAM: Handler(stream, self._limits, self._stream, envelope(error_body, CORS), methods=("GET",)),
        }

    async def _availability(self, _: Caller, request: Request) -> Reply:
        shop = await self._live.shop(self._signed_domain(request.query))
        view = await self._live.view(shop.id)
        window = int(time.time()) // WINDOW_SECONDS
        answer = self._answers.get(shop.id)
        if answer is None or (answer.version, answer.window) != (view.version, window):
            answer = await self._fresh_answer(shop, view, window)
        accepts_gzip = _accepts_gzip(request.headers.get(b"accept-encoding", b""))
        encoding = answer.compressed if accepts_gzip else answer.plain
        known = request.headers.get(b"if-none-match")
        unchanged = known is not None and not {encoding.etag, b"*"}.isdisjoint(_tags(known))
        return encoding.unchanged if unchanged else encoding.whole

    def _signed_domain(self, query: bytes) -> str:
        """The domain of the shop that a query is signed for. Raises `invalid_signature`."""
        now = time.time()
        domain, until = self._domains.get(query, ("", 0.0))
        if now >= until:
            domain = proxy.verify(query, self._secrets, now)
            self._domains[query] = domain, now + SIGNATURE_SECONDS
        return domain

    async def _fresh_answer(self, shop: Shop, view: ShopView, window: int) -> CachedAnswer:
        """A new answer. Requests that come while it is made wait for the same one."""
        key = (shop.id, view.version, window)
        task = self._encoding.get(key)
        if task is None:
            task = self._encoding[key] = asyncio.create_task(self._encode(shop, view, window))
            task.add_done_callback(lambda _: self._encoding.pop(key))
        answer = self._answers[shop.id] = await asyncio.shield(task)
        return answer

    async def _encode(self, shop: Shop, view: ShopView, window: int) -> CachedAnswer:
        version, variants = view.version, view.encoded()
        url = msgspec.json.encode(self.stream_url(shop.domain, (window * WINDOW_SECONDS) + TOKEN_SECONDS))
        content = b'{"shared_inventory_id":%d,"variants":%s,"stream_url":%s}' % (
            shop.shared_inventory_id,
            variants,
            url,
        )
        etag = b"%d-%d" % (version, window)
        plain = compressed = _encoding(b'"%s"' % etag, content)
        if len(content) >= WORTH_COMPRESSING:
            zipped = await asyncio.to_thread(gzip.compress, content, 4)
            compressed = _encoding(b'"%s-gzip"' % etag, zipped, (b"content-encoding", b"gzip"))
        return CachedAnswer(version, window, plain, compressed)

    def stream_url(self, domain: str, expires: int) -> str:
        """The address of a shop's stream, valid until a moment in seconds since 1970."""
        query = urlencode({"shop": domain, "exp": expires, "sig": self._signer.sign(f"{domain} {expires}")})
        return f"{self._base_url}{STREAM}?{query}"

    async def _stream(self, _: Caller, request: Request) -> Reply:
        query = read_query(request.query)
        domain, expires = query.get("shop", ""), query.get("exp", "")
        if query.keys() != {"shop", "exp", "sig"} or not self._signer.accepts(f"{domain} {expires}", query["sig"]):
            raise INVALID_STREAM_TOKEN()
        if time.time() > int(expires):
            raise INVALID_STREAM_TOKEN("The address of the stream has expired.")
        view = await self._live.view((await self._live.shop(domain)).id)
        seen = _position(request.headers.get(b"last-event-id", b""))
        if view.storefront.position < seen <= view.version:
            # The versions after the last message changed nothing here.
            seen = view.storefront.position
        feed, start = view.storefront, RETRY

        async def pending() -> bytes:
            nonlocal seen, start
            messages = feed.since(seen)
            seen = feed.position
            chunk = start + (view.snapshot() if messages is None else b"".join(messages))
            start = b""
            return chunk

        owners: Mapping[Owner, object] = {"address": address(request.scope), "tenant": view.shop_id}
        self._streams.require_room(owners)
        return EventStream(
            200, headers=[CORS], streams=self._streams, name="storefront", feed=feed, pending=pending, owners=owners
        )


def _position(last_event_id: bytes) -> int:
    """The version a reader has seen; -1 for one who has seen nothing."""
    return int(last_event_id) if re.fullmatch(rb"[0-9]{1,18}", last_event_id) else -1


def _encoding(etag: bytes, content: bytes, *more: Header) -> Encoding:
    headers: Sequence[Header] = (
        (b"cache-control", b"private, no-cache"),
        (b"vary", b"accept-encoding"),
        (b"etag", etag),
        *more,
    )
    return Encoding(etag, Reply(200, content, headers), Reply(304, headers=headers))


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
