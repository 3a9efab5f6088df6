"""The pages of a service: one layout, one style, the headers of every answer for browsers, and its error pages.

Pages work without JavaScript, load nothing from other servers, and contain no inline script. The style is in the page
itself, so that the first paint needs no second request; the policy allows exactly this style.
"""

from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.types import Scope

from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.answers import IMMUTABLE, always, known_parameters
from holdfast.kit.http.handler import Header, RenderProblem, Reply, Request, headers_of, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.http.path_repair import PATH_REPAIR, PathRepair
from holdfast.kit.pages.language import ENGLISH, Language, language_of
from holdfast.kit.pages.layout import CONSOLE_STYLE, STYLE, Frame

MEDIA_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
HTML = b"text/html; charset=utf-8"

_STYLE_HASHES = " ".join(
    f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" for style in (STYLE, CONSOLE_STYLE)
)

_POLICY = (
    f"default-src 'none'; style-src 'self' {_STYLE_HASHES}{{}}; script-src 'self'{{}}; img-src 'self'{{}}; "
    "connect-src 'self'{}; form-action 'self'{}; base-uri 'none'; frame-ancestors {}"
)


MAX_REPEAT_SECONDS = 60
"""The longest time after which a browser repeats a refused request by itself."""

PROGRAM_PATHS = ("/api/", "/mcp/", "/.well-known/", "/oauth/")
"""The prefixes of paths where browsers also get errors as JSON."""


class NavigationEntry(NamedTuple):
    """An entry of the navigation: its name in English, the name of its icon, and how much waits there."""

    name: str
    icon: str
    waiting_count: int = 0


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
        script_source: str = "",
        frames: str = "",
        headers: Sequence[Header] = (),
        **values: Any,
    ) -> Reply:
        """A page.

        framed           whether any site may show it in a frame
        ancestors        the only sites that may show it in a frame, for `frame-ancestors` of the policy
        images           another origin of images, for `img-src`
        styles           further styles inside the page, for `style-src`
        connects         another origin that scripts may call, for `connect-src`
        forms            another origin that forms may be sent to, for `form-action`
        script_source    another origin of scripts, for `script-src`
        frames           the origin of frames inside the page, for `frame-src`
        """
        content = self.render(template, language=language, framed=framed, **values)
        security = security_headers(
            language,
            framed=framed,
            ancestors=ancestors,
            images=images,
            styles=styles,
            connects=connects,
            forms=forms,
            script_source=script_source,
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
        script_source: str = "",
        query: bytes | None = None,
        **values: Any,
    ) -> Reply:
        """The page for a problem, by default in the language of the browser. It has a link to `home`.

        If the request can be repeated soon, the browser does so by itself.

        query     the query of which links to other languages keep the known parameters; None: that of the request
        values    the values of a console, which then surrounds the page

        If nothing was found because of what is glued to the address, the reply is a redirect to the right one.
        """
        if problem.type is NOT_FOUND and (location := _repaired_location(request.scope)):
            return redirect_permanently(location)
        headers = headers_of(problem)
        is_repeated = request.method == "GET" and 0 < (problem.retry_after or 0) <= MAX_REPEAT_SECONDS
        if is_repeated:
            headers.append((b"refresh", str(problem.retry_after).encode()))
        return self.page(
            "error.html",
            problem.status,
            language=language or language_of(request),
            framed=framed,
            ancestors=ancestors,
            script_source=script_source,
            headers=headers,
            is_repeated=is_repeated,
            home=home,
            query=request.query if query is None else query,
            problem=problem,
            request_id=problem.extra.get("request_id"),
            **values,
        )

    def read_query(self, request: Request) -> dict[str, str]:
        """The parameters of a query that pages read. What other programs have added to a link is ignored.

        Refuses a parameter that is given twice.
        """
        return read_query(known_parameters(request.query, self.parameters))

    def unrouted(self, otherwise: RenderProblem) -> RenderProblem:
        """A function that renders unknown paths and wrong methods: as a page for browsers, and by `otherwise`
        for programs.
        """

        def refuse(problem: Problem, request: Request) -> Reply:
            if _takes_page(request) and (location := _repaired_location(request.scope)):
                return redirect_permanently(location)
            if not _wants_page(request):
                return otherwise(problem, request)
            return self.refuse(problem, request, query=b"")

        return refuse

    def assets(self, *names: str) -> list[Route]:
        """Routes to assets."""
        return [self._route(name) for name in names]

    def _route(self, name: str) -> Route:
        content, media_type = self.content(name), MEDIA_TYPES[Path(name).suffix]
        return Route(self.asset(name), always(content, media_type, IMMUTABLE))


def redirect(address: str, *, framed: bool = False, ancestors: str = "") -> Reply:
    """A redirect to another URL, which the browser requests with GET."""
    headers = security_headers(framed=framed, ancestors=ancestors)
    return Reply(303, headers=[*headers, (b"location", _encoded_address(address))])


def _encoded_address(address: str) -> bytes:
    """A URL for a header. Characters that are already encoded are not encoded again."""
    return quote(address, safe="!#$%&'()*+,/:;=?@[]").encode("ascii")


def security_headers(
    language: Language | None = None,
    *,
    framed: bool = False,
    ancestors: str = "",
    images: str = "",
    styles: str = "",
    connects: str = "",
    forms: str = "",
    script_source: str = "",
    frames: str = "",
) -> list[Header]:
    """The security headers of every answer for browsers. With a language, they say that the page has translations."""
    policy = _policy(styles, script_source, images, connects, forms, "*" if framed else ancestors or "'none'", frames)
    headers = [
        (b"content-security-policy", policy),
        (b"referrer-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    ]
    if language:
        headers += [(b"content-language", language.code.encode()), (b"vary", b"accept-language")]
    # The older header cannot name single sites.
    return headers if framed or ancestors else [*headers, (b"x-frame-options", b"DENY")]


@lru_cache(1_000)
def _policy(
    styles: str, script_source: str, images: str, connects: str, forms: str, ancestors: str, frames: str
) -> bytes:
    """The policy for the content of a page. `ancestors`: the sources of `frame-ancestors`."""
    more = [f" {source}" if source else "" for source in (styles, script_source, images, connects, forms)]
    policy = _POLICY.format(*more, ancestors)
    return (f"{policy}; frame-src {frames}" if frames else policy).encode()


def redirect_permanently(location: bytes) -> Reply:
    """A redirect to the right address of a page. The wrong one may have a secret, which no other server gets."""
    headers = [header for header in security_headers() if header[0] != b"referrer-policy"]
    return Reply(301, headers=[*headers, (b"referrer-policy", b"no-referrer"), (b"location", location)])


def _repaired_location(scope: Scope) -> bytes | None:
    repair: PathRepair | None = scope.get(PATH_REPAIR)
    return repair and repair.location(scope)


def _takes_page(request: Request) -> bool:
    """Whether a request may be answered with a page: programs that draw previews of links accept everything.

    Programs with a key are told that there is nothing.
    """
    if b"x-api-key" in request.headers or b"authorization" in request.headers:
        return False
    accept = request.headers.get(b"accept", b"*/*")
    return b"text/html" in accept or b"*/*" in accept


def _wants_page(request: Request) -> bool:
    return b"text/html" in request.headers.get(b"accept", b"") and not f"{request.path}/".startswith(PROGRAM_PATHS)
