"""What public pages register: the start page, the ones for developers, `robots.txt` and the icon."""

from typing import Any

from holdfast.inventory.context import Context
from holdfast.inventory.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.page_cache import constant_page
from holdfast.kit.pages.site import redirect
from holdfast.kit.process.discovery import document
from holdfast.kit.process.part import Endpoints, Part

ROBOTS = b"User-agent: *\nDisallow:\n"

DEVELOPERS = "/developers"

EXAMPLE_REQUEST = """\
{
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
      "name": "get_availability",
      "arguments": {"variant_gids": ["gid://shopify/ProductVariant/1006"]}
    }
  }"""
"""A call that answers how many of a variant can be sold."""

EXAMPLE_ANSWER = """\
{
  "shared_inventory_id": 1,
  "version": 12,
  "variants": {"gid://shopify/ProductVariant/1006": 7},
  "limiting_pool": {"gid://shopify/ProductVariant/1006": 1}
}"""
"""The text in its answer, with numbers of the demonstration."""

EXAMPLE_STOREFRONT = """\
{
  "shared_inventory_id": 1,
  "variants": {"gid://shopify/ProductVariant/1006": 7},
  "stream_url": "https://…/storefront/stream?shop=…&exp=…&sig=…"
}"""
"""What a storefront gets."""

EXAMPLE_CHANGE = """\
data: {"variants": {"gid://shopify/ProductVariant/1006": 6}, "removed": []}"""
"""A line of the stream, after one more 6-pack was sold."""


async def _documentation(caller: Caller, request: Request) -> Reply:
    """The address of documentation in the events service leads to what this service has."""
    return redirect(language_of(request).at(DEVELOPERS))


def endpoints(context: Context) -> Endpoints:
    """The start page, the ones for developers, `robots.txt` and the icon."""
    settings = context.database.resources.settings
    values: dict[str, Any] = {"base_url": settings.base_url, "can_install": bool(settings.client_id)}
    return Endpoints(
        [
            constant_page(
                SITE, "/", "pages/home.html", context.limits, "home", forms=settings.forms_to_platform, **values
            ),
            constant_page(
                SITE,
                DEVELOPERS,
                "pages/developers.html",
                context.limits,
                "developers",
                example_request=EXAMPLE_REQUEST,
                example_answer=EXAMPLE_ANSWER,
                example_storefront=EXAMPLE_STOREFRONT,
                example_change=EXAMPLE_CHANGE,
                **values,
            ),
            Route("/docs", Handler(Access("documentation"), context.limits, _documentation, SITE.refuse)),
            document("/robots.txt", ROBOTS, "text/plain"),
            *SITE.assets("icon.svg", "pages/home.css"),
        ]
    )


PART = Part(endpoints=endpoints)
