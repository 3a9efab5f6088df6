"""The pages of the service: one look, one set of headers. A slice keeps its templates in its own folder.

Pages work without JavaScript, fetch nothing from elsewhere, and hold no inline script or style.
"""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

EVENTS = Path(__file__).parents[1]
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors {}"
)

_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(EVENTS),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def page(
    template: str,
    status: int = 200,
    *,
    framed: bool = False,
    headers: Mapping[str, str] = MappingProxyType({}),
    **values: Any,
) -> Response:
    """A page, which others may show in a frame only if it is made for that."""
    content = _templates.get_template(template).render(framed=framed, **values)
    return HTMLResponse(content, status, {**secured(framed=framed), **headers})


def secured(*, framed: bool = False) -> dict[str, str]:
    """The headers of everything a browser gets from us."""
    headers = {
        "Content-Security-Policy": _POLICY.format("*" if framed else "'none'"),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return headers if framed else {**headers, "X-Frame-Options": "DENY"}


@cache
def asset(name: str) -> str:
    """The address of a file that pages need, such as `pages/style.css`; it changes with the content."""
    return f"/assets/{sha256(_content(name)).hexdigest()[:16]}/{name}"


@cache
def _content(name: str) -> bytes:
    return (EVENTS / name).read_bytes()


_templates.globals["asset"] = asset  # pyright: ignore[reportArgumentType] - it takes any object


def assets(*names: str) -> list[BaseRoute]:
    """Routes to the files that pages need."""
    return [_asset(name) for name in names]


def _asset(name: str) -> Route:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}

    async def answer(_: Request) -> Response:
        return Response(_content(name), headers=headers, media_type=KINDS[Path(name).suffix])

    return Route(asset(name), answer)
