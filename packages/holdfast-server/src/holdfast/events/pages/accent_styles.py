"""How the pages of an organizer look: its accent as a stylesheet, and its logo."""

import re
from typing import Any

from holdfast.events.organizers.accent import passes, stylesheet, stylesheet_path
from holdfast.events.organizers.branding import logo_url
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.answers import IMMUTABLE
from holdfast.kit.http.handler import NOSNIFF, Access, Reply, Request

STYLESHEETS = Access("accent")

_COLOR_IN_PATH = re.compile("/accents/([0-9a-f]{6})-")
_HEADERS = [IMMUTABLE, NOSNIFF]


def branding_values(accent: str | None, logo: str | None, settings: Settings) -> dict[str, Any]:
    """The values of templates about the look of an organizer: the path of its style, and the address of its logo."""
    return {"accent_style": stylesheet_path(accent) if accent else "", "logo_url": logo_url(logo, settings)}


async def answer_stylesheet(_: Caller, request: Request) -> Reply:
    """The style of the accent in the path. Raises `not_found` for a colour that no organizer can choose."""
    match = _COLOR_IN_PATH.match(request.path)
    accent = f"#{match[1]}" if match else ""
    if not match or not passes(accent) or request.path != stylesheet_path(accent):
        raise NOT_FOUND()
    return Reply(200, stylesheet(accent).encode(), _HEADERS, b"text/css; charset=utf-8")
