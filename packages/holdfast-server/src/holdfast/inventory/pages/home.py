"""The routes of the public pages."""

from holdfast.inventory.site import SITE
from holdfast.kit.http.index import Route
from holdfast.kit.pages.page_cache import constant_page
from holdfast.kit.process.discovery import document
from holdfast.kit.running.rate_limits import Limits

ROBOTS = b"User-agent: *\nDisallow:\n"


def routes(base_url: str, limits: Limits) -> list[Route]:
    """Return the routes of the start page, `robots.txt` and the icon."""
    return [
        constant_page(SITE, "/", "pages/home.html", limits, "home", base_url=base_url),
        document("/robots.txt", ROBOTS, "text/plain"),
        *SITE.assets("icon.svg"),
    ]
