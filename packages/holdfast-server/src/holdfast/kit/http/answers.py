"""Answers: how long caches may keep them, what of a query they repeat, which are compressed, files that are generated
while sent, and constant ones.

A cache is a proxy or a content delivery network in front of the service. What it may keep is the same for every client
that requests the same address in the same language and encoding. All other answers are `NO_STORE`.
docs/cache.md lists both.

A proxy may have signed the query of a request, with a secret that signs other messages too. The sender of the request
must not learn the signature. So an answer repeats only parameters that the service knows by name, and none of these
carries a proof.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import lru_cache

from msgspec.structs import replace

from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import (
    NO_STORE,
    NOSNIFF,
    Header,
    Headers,
    RenderProblem,
    Reply,
    Request,
    require_method,
)

LIVE_SECONDS = 1
"""Seconds for which a cache gives a page that changes while people look at it."""

RENEWAL_SECONDS = 4
"""Further seconds for which a cache gives such a page while it requests a new one. If a service takes longer than this,
caches send it all requests for the page."""

OUTAGE_SECONDS = 600
"""Seconds for which a cache gives such a page while the service fails. The form on it is valid for two hours, and was
made at most half an hour before."""


def cache_control(seconds: int, renewal: int = 0, outage: int = 0) -> Header:
    """A header by which browsers ask each time, and shared caches do so after `seconds`."""
    value = f"public, max-age=0, s-maxage={seconds}"
    value += f", stale-while-revalidate={renewal}" if renewal else ""
    value += f", stale-if-error={outage}" if outage else ""
    return b"cache-control", value.encode()


LIVE = cache_control(LIVE_SECONDS, RENEWAL_SECONDS, OUTAGE_SECONDS)
"""For what people look at while it changes: pages, forms, the progress of a waiting room."""

FEED = cache_control(60, 60, 86_400)
"""For what programs fetch from time to time."""

BRIEF = cache_control(LIVE_SECONDS)
"""For an answer that is right only for a moment: that there is no such page, or how much can be sold."""

IMMUTABLE: Header = (b"cache-control", b"public, max-age=31536000, immutable")
"""For an address whose content never changes. Browsers do not ask again."""


def cached_refusals(refuse: RenderProblem) -> RenderProblem:
    """A function that renders problems of a public page. A cache keeps for a moment that there is no such page.

    So a crowd at a page that is gone reaches the service once a second.
    """

    def render(problem: Problem, request: Request) -> Reply:
        reply = refuse(problem, request)
        if problem.status in (404, 410) and request.method in ("GET", "HEAD"):
            reply.headers = [*(header for header in reply.headers if header[0] != BRIEF[0]), BRIEF]
        return reply

    return render


@lru_cache(256)
def accepts_gzip(header: bytes) -> bool:
    """Whether an `Accept-Encoding` header accepts gzip: by its name, or else by `*`, and not with `q=0`."""
    weights: dict[str, str] = {}
    for choice in header.decode("latin-1").lower().split(","):
        coding, _, weight = choice.partition(";")
        weights[coding.strip()] = weight
    weight = weights.get("gzip", weights.get("*"))
    return weight is not None and not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight)


class Download(Reply, kw_only=True):
    """A file as the answer to a request.

    If it cannot be generated to its end, the connection is closed, so that no client takes a part for the file.

    filename    ASCII letters, digits, dots and dashes
    parts       consumed one by one, as fast as the client reads, until it disconnects
    """

    filename: str
    parts: AsyncIterator[bytes]

    async def send(self, request: Request) -> None:
        disposition: Header = (b"content-disposition", f'attachment; filename="{self.filename}"'.encode())
        headers = [NOSNIFF, NO_STORE, *self.headers, (b"content-type", self.media_type), disposition]
        await request.send({"type": "http.response.start", "status": self.status, "headers": headers})
        if request.method != "HEAD":
            gone = asyncio.create_task(_wait_for_disconnect(request))
            try:
                async for part in self.parts:
                    if gone.done():
                        return
                    await request.send({"type": "http.response.body", "body": part, "more_body": True})
            finally:
                gone.cancel()
        await request.send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class PlainEndpoint:
    """An endpoint that every client may call, without limit and uncounted. Its replies are in memory.

    reply        returns the reply to GET and HEAD. It gets all values of a header that is sent several times
    preflight    the headers of the answer to OPTIONS, which says who may read the document; None: it refuses OPTIONS
    """

    def __init__(self, reply: Callable[[Request], Reply], preflight: Sequence[Header] | None = None) -> None:
        self._reply = reply
        self._preflight = preflight
        self.methods = ("GET", "HEAD") if preflight is None else ("GET", "HEAD", "OPTIONS")

    async def __call__(self, request: Request) -> Reply:
        require_method(request, self.methods)
        if request.method == "OPTIONS":
            return Reply(204, headers=self._preflight or ())
        return self._reply(_with_all_values(request))


def _with_all_values(request: Request) -> Request:
    """The request with all values of its headers."""
    if len(request.headers) == len(request.scope["headers"]):
        return request
    headers: Headers = {}
    for name, value in request.scope["headers"]:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return replace(request, headers=headers)


def always(content: bytes, media_type: bytes, *headers: Header) -> PlainEndpoint:
    """An endpoint whose answer depends on nothing."""
    reply = Reply(200, content, headers, media_type)
    return PlainEndpoint(lambda _: reply)


def has_version(condition: bytes, etag: bytes) -> bool:
    """Whether an `If-None-Match` names this tag (RFC 9110, section 13.1.2)."""
    tags = {tag.strip().removeprefix(b"W/") for tag in condition.split(b",")}
    return not tags.isdisjoint({etag, b"*"})


NO_PARAMETERS: frozenset[str] = frozenset()


def known_parameters(query: bytes, parameters: Collection[str]) -> bytes:
    """The parameters of a query that have one of these names, unchanged."""
    pairs = query.split(b"&")
    return b"&".join(pair for pair in pairs if pair and pair.partition(b"=")[0].decode("latin-1") in parameters)


def has_other_parameters(query: bytes, parameters: Collection[str]) -> bool:
    """Whether a query has parameters that have none of these names."""
    return known_parameters(query, parameters) != b"&".join(pair for pair in query.split(b"&") if pair)
