"""Serves a double, reads its forms and converts its pages."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Coroutine
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.kit.http.answers import IMMUTABLE
from holdfast.kit.http.handler import NOSNIFF, Reply
from holdfast.kit.http.sockets import address_of
from holdfast.kit.pages.language import Language, accepted_language
from holdfast.kit.pages.site import MEDIA_TYPES, Site
from holdfast.kit.process.serving import ServedService

MAX_FORM_BYTES = 20_000
"""The maximum size of a form."""


FOREIGN_HOST = "This is a demonstration on one machine: ask for it by its address of that machine, such as {}.\n"
FOREIGN_SITE = "This was sent by a page of another site. Open the page here, and send its form from there.\n"


def guarded_server(app: ASGIApp, listener: socket.socket) -> ServedService:
    """A server for an application on a socket, guarded against other sites. Requests are not logged."""
    app = guard_application(app, address_of(listener))
    return ServedService(
        uvicorn.Config(app, log_level="warning", log_config=None, access_log=False, ws="none"), listener
    )


def guard_application(app: ASGIApp, address: str) -> ASGIApp:
    """An application that refuses requests that a page of another site sends through a browser.

    A visitor of a double acts as merchant or payer without signing in. A page of another site could send it forms, and
    could read its answers too if the name of that site led to this machine.

    address    the address of the application; other IP addresses are accepted too, but no other names
    """
    hostname = urlsplit(address).hostname

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        answer = app
        if scope["type"] == "http":
            request = Request(scope)
            host = request.headers.get("host", "")
            if not _is_of_machine(host, hostname):
                answer = PlainTextResponse(FOREIGN_HOST.format(address), 421)
            elif request.method not in {"GET", "HEAD", "OPTIONS"} and _is_foreign(request, host):
                answer = PlainTextResponse(FOREIGN_SITE, 403)
        await answer(scope, receive, send)

    return guard


def _is_of_machine(host: str, hostname: str | None) -> bool:
    """Whether a host in a request is an IP address, or a name that no other site can have."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name in {"localhost", hostname} or bool(ip_address(name))
    except ValueError:
        return False


def _is_foreign(request: Request, host: str) -> bool:
    """Whether a browser reports that a page of another site sent a request. Programs report nothing."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site not in {"same-origin", "none"}
    return origin is not None and origin.partition("://")[2] != host


@contextlib.asynccontextmanager
async def run_in_background(*work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run coroutines in the background while the block lasts. Raises their exceptions at its end."""
    background = [asyncio.create_task(coroutine) for coroutine in work]
    try:
        yield
    finally:
        for task in background:
            task.cancel()
        for result in await asyncio.gather(*background, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


def language_of(request: Request) -> Language:
    """The language that the browser prefers. The links of the demo's pages name none."""
    return accepted_language(request.headers.get("accept-language", "").encode())


async def form_fields(request: Request) -> dict[str, str]:
    """The fields of a form; none if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            return {}
    fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    return {name: values[-1].strip() for name, values in fields.items()}


def asset_routes(site: Site, *names: str) -> list[BaseRoute]:
    """Routes to the assets of a site."""

    def route(name: str) -> Route:
        reply = Reply(200, site.content(name), [IMMUTABLE, NOSNIFF], MEDIA_TYPES[Path(name).suffix])

        async def answer(_: Request) -> Response:
            return to_response(reply)

        return Route(site.asset(name), answer)

    return [route(name) for name in names]


def to_response(reply: Reply) -> Response:
    """Convert an answer of the kit's pages to a response of Starlette."""
    headers = {name.decode(): value.decode() for name, value in reply.headers}
    media_type = reply.media_type.decode() if reply.content else None
    return Response(reply.content, reply.status, headers, media_type)
