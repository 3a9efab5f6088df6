"""The pages of a service: one layout, one style, the headers of every answer for browsers, and its error pages.

Pages work without JavaScript, load nothing from other servers, and contain no inline script. The style is in the page
itself, so that the first paint needs no second request; the policy allows exactly this style.
"""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message

from holdfast.kit.handler import NOSNIFF, Header, Reply, Request, headers_of
from holdfast.kit.pages.frame import STYLE, Frame
from holdfast.kit.pages.language import ENGLISH, Language, language_of
from holdfast.kit.problems import METHOD_NOT_ALLOWED, NOT_FOUND, Problem

KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HTML = b"text/html; charset=utf-8"

_STYLE_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()

_POLICY = (
    f"default-src 'none'; style-src 'self' 'sha256-{_STYLE_HASH}'{{}}; script-src 'self'{{}}; img-src 'self'{{}}; "
    "connect-src 'self'{}; form-action 'self'{}; base-uri 'none'; frame-ancestors {}"
)


PROGRAMS = ("/api/", "/mcp/", "/.well-known/", "/oauth/")
"""The beginnings of paths where also a browser gets errors as JSON."""

Unrouted = Callable[[StarletteRequest, Exception], Awaitable[Response]]


class Site(Frame):
    """The pages of one service."""

    def page(
        self,
        template: str,
        status: int = 200,
        *,
        language: Language = ENGLISH,
        framed: bool = False,
        ancestors: str = "",
        images: str = "",
        styles: str = "",
        connects: str = "",
        forms: str = "",
        programs: str = "",
        frames: str = "",
        headers: Sequence[Header] = (),
        **values: Any,
    ) -> Reply:
        """A page.

        framed       whether any site may show it in a frame
        ancestors    the only sites that may, as `frame-ancestors` of a policy has them
        images       the origin of images that are not of this site
        styles       further styles that stand in the page, as `style-src` of a policy has them
        connects     where scripts may ask besides this site, as `connect-src` of a policy has it
        forms        where forms may lead besides this site, as `form-action` of a policy has it
        programs     the origin of scripts that are not of this site
        frames       the origin of what frames in the page show
        """
        content = self.render(template, language=language, framed=framed, **values)
        security = secured(
            language,
            framed=framed,
            ancestors=ancestors,
            images=images,
            styles=styles,
            connects=connects,
            forms=forms,
            programs=programs,
            frames=frames,
        )
        return Reply(status, content.encode(), [*security, *headers], HTML)

    def refuse(
        self,
        problem: Problem,
        request: Request,
        *,
        framed: bool = False,
        ancestors: str = "",
        language: Language | None = None,
        home: str = "/",
    ) -> Reply:
        """The page for a problem, in the language of the browser unless another one is given. It leads to `home`."""
        return self.page(
            "error.html",
            problem.status,
            language=language or language_of(request),
            framed=framed,
            ancestors=ancestors,
            headers=headers_of(problem),
            home=home,
            query=request.query,
            problem=problem,
            request_id=problem.extra.get("request_id"),
        )

    def unrouted(self, otherwise: Unrouted) -> Unrouted:
        """Renders what no route answers: as a page for browsers, and by `otherwise` for programs."""

        async def refuse(request: StarletteRequest, error: Exception) -> Response:
            answer = await otherwise(request, error)
            if not _wants_page(request):
                return answer
            problem = METHOD_NOT_ALLOWED() if answer.status_code == 405 else NOT_FOUND()
            problem.allow = answer.headers.get("allow", "")
            page = self.refuse(
                problem, Request(request.scope, request.receive, _nowhere, dict(request.scope["headers"]))
            )
            headers = {name.decode(): value.decode() for name, value in (NOSNIFF, *page.headers)}
            return Response(page.content, page.status, headers, page.media_type.decode())

        return refuse

    def assets(self, *names: str) -> list[BaseRoute]:
        """Routes to files that pages use."""
        return [self._route(name) for name in names]

    def _route(self, name: str) -> Route:
        content, media_type = self.content(name), KINDS[Path(name).suffix]
        headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}

        async def answer(_: StarletteRequest) -> Response:
            return Response(content, headers=headers, media_type=media_type)

        return Route(self.asset(name), answer)


def redirect(address: str, *, framed: bool = False, ancestors: str = "") -> Reply:
    """A redirect to another address, which the browser requests with GET."""
    headers = secured(framed=framed, ancestors=ancestors)
    return Reply(303, headers=[*headers, (b"location", _encoded(address))])


def _encoded(address: str) -> bytes:
    """An address as a header may contain it. What is encoded already stays as it is."""
    return quote(address, safe="!#$%&'()*+,/:;=?@[]").encode("ascii")


def secured(
    language: Language | None = None,
    *,
    framed: bool = False,
    ancestors: str = "",
    images: str = "",
    styles: str = "",
    connects: str = "",
    forms: str = "",
    programs: str = "",
    frames: str = "",
) -> list[Header]:
    """The headers of every answer for browsers. With a language, they say that the page exists in several."""
    more = [f" {each}" if each else "" for each in (styles, programs, images, connects, forms)]
    policy = _POLICY.format(*more, "*" if framed else ancestors or "'none'")
    if frames:
        policy += f"; frame-src {frames}"
    headers = [
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    ]
    if language:
        headers += [(b"content-language", language.code.encode()), (b"vary", b"accept-language")]
    # The older header can only say whether any site may.
    return headers if framed or ancestors else [*headers, (b"x-frame-options", b"DENY")]


def _wants_page(request: StarletteRequest) -> bool:
    return "text/html" in request.headers.get("accept", "") and not f"{request.url.path}/".startswith(PROGRAMS)


async def _nowhere(message: Message) -> None:
    raise AssertionError("an error page is not sent by itself")
