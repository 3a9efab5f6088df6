"""The routes of the pages for people."""

from starlette.routing import BaseRoute

from holdfast.inventory.site import SITE
from holdfast.kit.discovery import document
from holdfast.kit.limits import Limits
from holdfast.kit.pages.rendered import constant

ROBOTS = b"User-agent: *\nDisallow:\n"


def routes(base_url: str, limits: Limits) -> list[BaseRoute]:
    """The start page, and what search engines may show."""
    return [
        constant(SITE, "/", "pages/home.html", limits, "home", base_url=base_url),
        document("/robots.txt", ROBOTS, "text/plain"),
        *SITE.assets("icon.svg"),
    ]
