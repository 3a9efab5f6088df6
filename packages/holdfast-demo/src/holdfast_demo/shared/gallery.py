"""The page `/components` of a demonstration: every component of the pages of both services.

`holdfast up` puts it in front of the services, which do not have it themselves. They serve the scripts that it loads.
"""

import datetime as dt

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.kit.http.handler import Reply
from holdfast.kit.pages.chart import draw_bars, draw_steps
from holdfast.kit.pages.site import NavigationEntry, Site
from holdfast.kit.webhooks.verifying import VERIFYING
from holdfast_demo.shared.serving import to_response

COMPONENTS_PATH = "/components"

SITE = Site("Holdfast")

_EXAMPLE = [
    (dt.datetime(2026, 11, 1, tzinfo=dt.UTC) + dt.timedelta(days=day), number)
    for day, number in enumerate((40, 36, 36, 31, 24, 50, 47, 41, 40, 33, 27, 22, 60, 55))
]
"""The numbers of the charts."""

_EXAMPLE_KINDS = [
    {3: "correction", 5: "count", 12: "count"}.get(number, "sale" if number else "") for number in range(len(_EXAMPLE))
]


def with_gallery(app: ASGIApp) -> ASGIApp:
    """An application with the gallery in front of it."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_of_gallery = (
            scope["type"] == "http" and scope["path"] == COMPONENTS_PATH and scope["method"] in {"GET", "HEAD"}
        )
        await (to_response(gallery_page()) if is_of_gallery else app)(scope, receive, send)

    return answer


def gallery_page() -> Reply:
    """The page with every component."""
    return SITE.page(
        "gallery.html",
        navigation={COMPONENTS_PATH: NavigationEntry("Components", "layout-grid")},
        here=COMPONENTS_PATH,
        email="",
        token="",
        values={"title": "Open studio", "zone": "UTC", "price": "fixed"},
        errors={"capacity": ["must be an integer"]},
        program=VERIFYING,
        steps=draw_steps(_EXAMPLE, _EXAMPLE[-1][0] + dt.timedelta(hours=4), _EXAMPLE_KINDS),
        bars=draw_bars(_EXAMPLE),
    )
