"""The page on which people check a receipt in their browser. It is the same for everybody, in each language."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup
from starlette.routing import BaseRoute, Route

from holdfast.events.log.keys import CHANNEL, list_public_keys
from holdfast.events.resources import Database
from holdfast.events.site import SITE
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.page_cache import FIXED_PAGES, CachedPage, PageCache, cached_page
from holdfast.kit.pages.site import security_headers
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.running.rate_limits import Limits
from holdfast_verify.formats.receipts import key_name
from holdfast_verify.formats.signed_note import vkey

SCRIPT = "".join(
    (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("verify_history.js", "verify.js")
)
"""The script. It is inside the page, which can so be saved as one file; the policy allows it by its hash."""

SCRIPT_SOURCE = f"'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"

LOG_KEYS = cache_bound("Public keys of logs that `/verify` shows", "events", "1 text in a process, for a second")


def routes(database: Database, limits: Limits) -> list[BaseRoute]:
    """The route of the page."""
    pages = PageCache(FIXED_PAGES)
    name = key_name(database.resources.settings.base_url)

    async def read_keys(name: str) -> str:
        return "\n".join(vkey(name, key) for key, _ in await database.read(list_public_keys))

    # Read once a second, however many people look at the page.
    key_texts = LookupCache[str, str](LOG_KEYS, database, CHANNEL, str, read_keys)

    async def answer(_: Caller, request: Request) -> Reply:
        language = language_of(request)
        # The page has them inside, so that it checks receipts offline when it is saved.
        keys = await key_texts.get(name)

        async def render() -> CachedPage:
            content = SITE.render("log/verify.html", language=language, script=Markup(SCRIPT), keys=keys)  # noqa: S704 - ours
            return cached_page(content, security_headers(language, programs=SCRIPT_SOURCE))

        return (await pages.get((language, keys), render)).reply(request)

    return [Route("/verify", Handler(Access("verify_page"), limits, answer, SITE.refuse))]
