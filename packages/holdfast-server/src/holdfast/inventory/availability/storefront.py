"""The two routes that storefronts read: the effective quantities, and a stream of their changes.

An answer is encoded once for each version and then sent as bytes. The address of the stream has a token of its own,
because a browser opens it directly, without the platform, which signs all other requests.
"""

import asyncio
import gzip
import re
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

import msgspec
from cachetools import LRUCache

from holdfast.inventory.availability.cache import MAX_CACHED_SHOPS, AvailabilityCache, CachedShop
from holdfast.inventory.problems import INVALID_STREAM_TOKEN, error_body
from holdfast.inventory.resources import Resources
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shops.model import Shop
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import address, create_shared_task
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.answers import BRIEF, accepts_gzip
from holdfast.kit.http.event_streams import EventStream, StreamOwner, Streams, encode_retry
from holdfast.kit.http.handler import Access, Handler, Header, Reply, Request, envelope, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits

AVAILABILITY = "/storefront/availability"
STREAM = "/storefront/stream"

TOKEN_SECONDS = 900
"""Seconds in which the address of a stream may be opened. An open stream stays open."""

WINDOW_SECONDS = 60
"""Seconds for which all answers have the same stream address, so that they can be cached."""

SIGNATURE_SECONDS = 1.0
"""Seconds for which a verified signature is cached: the requests of one second have the same one."""

MIN_COMPRESSED_BYTES = 1_000
CORS: Header = (b"access-control-allow-origin", b"*")


class EncodedReply(NamedTuple):
    """An answer in one content encoding: as a whole, and for clients that have it already."""

    etag: bytes
    full: Reply
    unchanged: Reply


class CachedAnswer(NamedTuple):
    """The answer about a shop, valid until its version or the window of the stream's address changes."""

    version: int
    window: int
    plain: EncodedReply
    compressed: EncodedReply


SIGNED_DOMAINS = cache_bound(
    "Signed addresses of storefronts that were checked",
    "inventory",
    f"{MAX_CACHED_SHOPS}",
    lost="is checked again",
)


class Storefront:
    """Answers `GET /storefront/availability`, and the stream of its changes.

    base_url    the service's address, without a slash at the end
    """

    def __init__(
        self, base_url: str, resources: Resources, limits: Limits, cache: AvailabilityCache, streams: Streams
    ) -> None:
        self._base_url = base_url
        self._secrets = resources.client_secrets
        self._signer = resources.secret.signer("storefront stream")
        self._limits = limits
        self._cache = cache
        self._streams = streams
        self._answers: WeakKeyDictionary[CachedShop, CachedAnswer] = WeakKeyDictionary()
        self._encoding_tasks: dict[tuple[CachedShop, int, int], asyncio.Task[CachedAnswer]] = {}
        self._domains: LRUCache[bytes, tuple[str, float]] = LRUCache(MAX_CACHED_SHOPS)

    def routes(self) -> list[Route]:
        availability = Access("get_storefront_availability")
        stream = Access("stream_storefront")
        refuse_stream = envelope(error_body, CORS)
        return [
            Route(AVAILABILITY, Handler(availability, self._limits, self._availability, envelope(error_body))),
            Route(STREAM, Handler(stream, self._limits, self._stream, refuse_stream, methods=("GET",))),
        ]

    async def _availability(self, _: Caller, request: Request) -> Reply:
        shop = await self._cache.shop(self._signed_domain(request.query))
        cached_shop = await self._cache.cached_shop(shop.id)
        window = int(time.time()) // WINDOW_SECONDS
        answer = self._answers.get(cached_shop)
        if answer is None or (answer.version, answer.window) != (cached_shop.version, window):
            answer = await self._fresh_answer(shop, cached_shop, window)
        is_compressed = accepts_gzip(request.headers.get(b"accept-encoding", b""))
        reply = answer.compressed if is_compressed else answer.plain
        sent_etag = request.headers.get(b"if-none-match")
        unchanged = sent_etag is not None and not {reply.etag, b"*"}.isdisjoint(_tags(sent_etag))
        return reply.unchanged if unchanged else reply.full

    def _signed_domain(self, query: bytes) -> str:
        """The domain of the shop that a query is signed for. Raises `invalid_signature`."""
        now = time.time()
        domain, until = self._domains.get(query, ("", 0.0))
        if now >= until:
            domain = signatures.verify_proxy_query(query, self._secrets, now)
            self._domains[query] = domain, now + SIGNATURE_SECONDS
        return domain

    async def _fresh_answer(self, shop: Shop, cached_shop: CachedShop, window: int) -> CachedAnswer:
        """A new answer. Requests that come while it is made wait for the same one."""
        key = (cached_shop, cached_shop.version, window)
        task = self._encoding_tasks.get(key)
        if task is None:
            task = self._encoding_tasks[key] = create_shared_task(self._encode(shop, cached_shop, window))
            task.add_done_callback(lambda _: self._encoding_tasks.pop(key))
        answer = self._answers[cached_shop] = await asyncio.shield(task)
        return answer

    async def _encode(self, shop: Shop, cached_shop: CachedShop, window: int) -> CachedAnswer:
        version, variants = cached_shop.version, cached_shop.encoded()
        url = msgspec.json.encode(self.stream_url(shop.domain, (window * WINDOW_SECONDS) + TOKEN_SECONDS))
        content = b'{"shared_inventory_id":%d,"variants":%s,"stream_url":%s}' % (
            shop.shared_inventory_id,
            variants,
            url,
        )
        etag = b"%d-%d" % (version, window)
        plain = compressed = _encoded_reply(b'"%s"' % etag, content)
        if len(content) >= MIN_COMPRESSED_BYTES:
            zipped = await asyncio.to_thread(gzip.compress, content, 4)
            compressed = _encoded_reply(b'"%s-gzip"' % etag, zipped, (b"content-encoding", b"gzip"))
        return CachedAnswer(version, window, plain, compressed)

    def stream_url(self, domain: str, expires: int) -> str:
        """The address of a shop's stream, valid until a time in seconds since 1970."""
        query = urlencode({"shop": domain, "exp": expires, "sig": self._signer.sign(f"{domain} {expires}")})
        return f"{self._base_url}{STREAM}?{query}"

    async def _stream(self, _: Caller, request: Request) -> Reply:
        query = _stream_query(request.query)
        domain, expires = query.get("shop", ""), query.get("exp", "")
        if query.keys() != {"shop", "exp", "sig"} or not self._signer.accepts(f"{domain} {expires}", query["sig"]):
            raise INVALID_STREAM_TOKEN()
        if time.time() > int(expires):
            raise INVALID_STREAM_TOKEN("The address of the stream has expired.")
        cached_shop = await self._cache.cached_shop((await self._cache.shop(domain)).id)
        position = _position(request.headers.get(b"last-event-id", b""))
        if cached_shop.storefront.position < position <= cached_shop.version:
            # The versions after the last message changed nothing for this stream.
            position = cached_shop.storefront.position
        feed, start = cached_shop.storefront, encode_retry()

        async def pending() -> bytes:
            nonlocal position, start
            messages = feed.since(position)
            position = feed.position
            chunk = start + (cached_shop.snapshot() if messages is None else b"".join(messages))
            start = b""
            return chunk

        owners: Mapping[StreamOwner, object] = {"address": address(request.scope), "tenant": cached_shop.shop_id}
        self._streams.require_room(owners)
        return EventStream(
            200, headers=[CORS], streams=self._streams, name="storefront", feed=feed, pending=pending, owners=owners
        )


def _stream_query(query_string: bytes) -> dict[str, str]:
    """The query of a stream's address. Raises `invalid_stream_token`, which does not repeat it."""
    try:
        return read_query(query_string)
    except Problem as problem:
        raise INVALID_STREAM_TOKEN() from problem


def _position(last_event_id: bytes) -> int:
    """The last version that a reader has seen; -1 for none."""
    return int(last_event_id) if re.fullmatch(rb"[0-9]{1,18}", last_event_id) else -1


def _encoded_reply(etag: bytes, content: bytes, *more: Header) -> EncodedReply:
    headers: Sequence[Header] = (
        BRIEF,
        (b"vary", b"accept-encoding"),
        (b"etag", etag),
        *more,
    )
    return EncodedReply(etag, Reply(200, content, headers), Reply(304, headers=headers))


def _tags(header: bytes) -> Sequence[bytes]:
    return [tag.strip().removeprefix(b"W/") for tag in header.split(b",")]
