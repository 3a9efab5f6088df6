"""The public addresses below `/log`: heads, tiles, entries, keys and proofs, and the page that verifies a receipt.

Those of a log are as c2sp.org/tlog-tiles has them, so that programs of others can verify it. On the page people check a
receipt in their browser. It is the same for all readers of a language.
"""

import gzip
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup

from holdfast.events.log import freeze_proofs, operations
from holdfast.events.log.keys import LOG_KEYS_CHANNEL, list_public_keys
from holdfast.events.log.model import LogAddress
from holdfast.events.paths import id_of
from holdfast.events.resources import Database, Reader
from holdfast.events.site import SITE
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.answers import BRIEF, IMMUTABLE, accepts_gzip, cached_refusals
from holdfast.kit.http.handler import Access, Handler, Header, Reply, Request, encode, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.operations.admission import Priority
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.page_cache import FIXED_PAGES, CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import security_headers
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast_verify.formats.receipts import key_name
from holdfast_verify.formats.signed_note import Noun, vkey

SCRIPT = "".join(
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("verify_history.js", "verify.js")
)
"""The script. It is inside the page, which can so be saved as one file; the policy allows it by its hash."""

SCRIPT_SOURCE = f"'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"

LOG_KEYS = cache_bound("Public keys of logs that `/verify` shows", "events", "1 text, for a second")


def verify_page_routes(database: Database, limits: Limits) -> list[Route]:
    """The route of the page."""
    pages = PageCache(FIXED_PAGES)
    name = key_name(database.resources.settings.base_url)

    async def read_keys(name: str) -> str:
        return "\n".join(vkey(name, key) for key, _ in await database.read(list_public_keys))

    # Read once a second, however many people look at the page.
    key_texts = LookupCache[str, str](LOG_KEYS, database, LOG_KEYS_CHANNEL, str, read_keys)

    async def answer(_: Caller, request: Request) -> Reply:
        language = language_of(request)
        # The page has them inside, so that it checks receipts offline when it is saved.
        keys = await key_texts.get(name)

        async def render() -> CachedPage:
            content = SITE.render("log/verify.html", language=language, script=Markup(SCRIPT), keys=keys)  # noqa: S704 - ours
            return cached_page(content, security_headers(language, script_source=SCRIPT_SOURCE))

        return (await pages.get((language, keys), render)).reply(request)

    return [Route("/verify", Handler(Access("verify_page"), limits, answer, SITE.refuse))]


PLACES: tuple[tuple[Noun, str], ...] = (("events", "/log/events/{id}"), ("queues", "/log/queues/{id}"))
HEAD_LOG: tuple[Noun, str] = ("heads", "/log/heads")
"""Where logs are. The head log has no id."""

ANY_ORIGIN: Header = (b"access-control-allow-origin", b"*")
FIVE_MINUTES: Header = (b"cache-control", b"public, max-age=300")
BYTES, TEXT = b"application/octet-stream", b"text/plain; charset=utf-8"

MAX_COMPRESSED_BUNDLES = 64
"""Compressed bundles that are cached: one has about 13 kB, and what it is made from 40 kB."""

Fields = Mapping[str, str]


@dataclass(frozen=True)
class LogResource:
    """One kind of address of a log.

    path         its path below the address of the log
    operation    its name in metrics
    read         reads its content, for the fields of the path
    caching      the header that says what caches do with it, if the address has the generation of the log
    """

    path: str
    operation: str
    read: Callable[[Reader, LogAddress, Fields], Awaitable[str | bytes]]
    caching: Header
    media_type: bytes = TEXT


RESOURCES = (
    LogResource(
        "/checkpoint", "get_log_checkpoint", lambda reader, log, _: operations.read_checkpoint(reader, log), BRIEF
    ),
    LogResource("/key", "get_log_key", lambda reader, log, _: operations.read_verifier_keys(reader, log), FIVE_MINUTES),
    LogResource(
        "/proofs/{number}",
        "get_log_proof",
        lambda reader, log, fields: operations.read_proof(reader, log, id_of(fields["number"])),
        BRIEF,
    ),
    LogResource(
        "/head-proof", "get_log_head_proof", lambda reader, log, _: operations.read_head_proof(reader, log), BRIEF
    ),
    LogResource(
        "/freeze-proof",
        "get_log_freeze_proof",
        lambda reader, log, _: freeze_proofs.read_freeze_proof(reader, log),
        FIVE_MINUTES,
    ),
    LogResource(
        "/tile/{tile:path}",
        "get_log_tile",
        lambda reader, log, fields: operations.read_tile(reader, log, f"tile/{fields['tile']}"),
        IMMUTABLE,
        BYTES,
    ),
)


OF_EVENTS_AND_QUEUES = ("/proofs/{number}", "/head-proof", "/freeze-proof")
"""What the head log does not have."""


def routes(runner: Runner, limits: Limits) -> list[Route]:
    """The routes of logs. Under overload they are refused like other reads, and each caller has its share of them."""
    require_capacity = partial(runner.admission.require_capacity, Priority.READ)
    refuse = cached_refusals(envelope(Problem.body, ANY_ORIGIN))

    async def list_keys(caller: Caller, request: Request) -> Reply:
        return Reply(200, encode(await runner.read(caller, operations.list_keys)), [FIVE_MINUTES, ANY_ORIGIN])

    def handler(noun: Noun, resource: LogResource) -> Handler:
        async def answer(caller: Caller, request: Request) -> Reply:
            fields: Fields = request.fields
            generation = id_of(fields["generation"]) if "generation" in fields else None
            log = LogAddress(noun, id_of(fields["id"]) if "id" in fields else 0, generation)
            content = await runner.read(caller, lambda reader: resource.read(reader, log, fields))
            body = content.encode() if isinstance(content, str) else content
            # Without a generation it is the newest log, which is another one after a restored backup.
            is_fixed = generation is not None or resource.caching is not IMMUTABLE
            headers = [resource.caching if is_fixed else FIVE_MINUTES, ANY_ORIGIN]
            if fields.get("tile", "").startswith("entries/"):
                headers.append((b"vary", b"Accept-Encoding"))
                if accepts_gzip(request.headers.get(b"accept-encoding", b"")):
                    headers.append((b"content-encoding", b"gzip"))
                    body = _compress(body)
            return Reply(200, body, headers, resource.media_type)

        return Handler(Access(resource.operation, require_capacity=require_capacity), limits, answer, refuse)

    return [
        Route(
            "/log/keys", Handler(Access("list_log_keys", require_capacity=require_capacity), limits, list_keys, refuse)
        ),
        *(
            Route(f"{path}{generation}{resource.path}", handler(noun, resource))
            for noun, path in (*PLACES, HEAD_LOG)
            for generation in ("", "/{generation}")
            for resource in RESOURCES
            if noun != "heads" or resource.path not in OF_EVENTS_AND_QUEUES
        ),
    ]


COMPRESSED_BUNDLES = cache_bound(
    "Compressed bundles of log entries", "events", f"{MAX_COMPRESSED_BUNDLES}", lost="is compressed again"
)


@lru_cache(MAX_COMPRESSED_BUNDLES)
def _compress(bundle: bytes) -> bytes:
    """A bundle of entries, compressed to a third."""
    return gzip.compress(bundle, mtime=0)
