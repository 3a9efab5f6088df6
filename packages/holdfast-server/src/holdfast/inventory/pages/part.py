"""What public pages register: the start page, the one for agents, `robots.txt` and the icon."""

from holdfast.inventory.context import Context
from holdfast.inventory.site import SITE
from holdfast.kit.pages.page_cache import constant_page
from holdfast.kit.process.discovery import document
from holdfast.kit.process.part import Endpoints, Part

ROBOTS = b"User-agent: *\nDisallow:\n"


def endpoints(context: Context) -> Endpoints:
    """The start page, the one for agents, `robots.txt` and the icon."""
    base_url = context.database.resources.settings.base_url
    return Endpoints(
        [
            constant_page(SITE, "/", "pages/home.html", context.limits, "home", base_url=base_url),
            constant_page(
                SITE, "/developers", "pages/developers.html", context.limits, "developers", base_url=base_url
            ),
            document("/robots.txt", ROBOTS, "text/plain"),
            *SITE.assets("icon.svg", "pages/home.css"),
        ]
    )


PART = Part(endpoints=endpoints)
