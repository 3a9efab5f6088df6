"""The pages of the service: they share a layout and headers. Each feature keeps its templates in its own folder.

Pages work without JavaScript, load nothing from other servers, and contain no inline script or style.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.handler import Header, Reply

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
    template: str, status: int = 200, *, framed: bool = False, headers: Sequence[Header] = (), **values: Any
) -> Reply:
    """A page. Other sites may show it in a frame only with `framed`."""
    content = render(template, framed=framed, **values)
    return Reply(status, content.encode(), [*secured(framed=framed), *headers], b"text/html; charset=utf-8")


def render(template: str, **values: Any) -> str:
    """A template in the layout of all pages, as text."""
    return _templates.get_template(template).render(**{"framed": False, **values})


def redirect(address: str, *, framed: bool = False) -> Reply:
    """A redirect to another address, which the browser requests with GET."""
    return Reply(303, headers=[*secured(framed=framed), (b"location", address.encode("latin-1"))])


def secured(*, framed: bool = False) -> list[Header]:
    """The headers of every answer for browsers."""
    headers = [
        (b"content-security-policy", _POLICY.format("*" if framed else "'none'").encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
    ]
    return headers if framed else [*headers, (b"x-frame-options", b"DENY")]


@cache
def asset(name: str) -> str:
    """The address of a file that pages use, such as `pages/style.css`. It changes when the content changes."""
    return f"/assets/{sha256(_content(name)).hexdigest()[:16]}/{name}"


@cache
def _content(name: str) -> bytes:
    return (EVENTS / name).read_bytes()


_templates.globals["asset"] = asset  # pyright: ignore[reportArgumentType] - it takes any object


def assets(*names: str) -> list[BaseRoute]:
    """Routes to the files that pages use."""
    return [_asset(name) for name in names]


def _asset(name: str) -> Route:
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}

    async def answer(_: Request) -> Response:
        return Response(_content(name), headers=headers, media_type=KINDS[Path(name).suffix])

    return Route(asset(name), answer)
