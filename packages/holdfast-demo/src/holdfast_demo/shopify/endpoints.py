"""The endpoints of a shop for programs: tokens, results of bulk operations, and the proxy of its storefront."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import parse_qs, parse_qsl

import httpx2
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast_demo.shopify import app_proxy
from holdfast_demo.shopify.admin_api.bulk import Bulks
from holdfast_demo.shopify.errors import OAuthRefusal
from holdfast_demo.shopify.oauth import OAuth
from holdfast_demo.shopify.platform_state import PlatformState

MAX_BODY_BYTES = 100_000

_NOT_PASSED = frozenset(
    {"cookie", "set-cookie", "host", "connection", "content-length", "transfer-encoding", "content-encoding"}
)


def routes(platform: PlatformState, oauth: OAuth, bulks: Bulks) -> list[BaseRoute]:
    """The routes for programs."""
    handlers = _Endpoints(platform, oauth, bulks)
    return [
        Route("/{shop}/admin/oauth/access_token", handlers.token, methods=["POST"]),
        Route("/{shop}/bulk/{name}", handlers.result),
        Route(f"/{{shop}}/{app_proxy.PREFIX}/{app_proxy.SUBPATH}/{{path:path}}", handlers.storefront),
    ]


class _Endpoints:
    def __init__(self, platform: PlatformState, oauth: OAuth, bulks: Bulks) -> None:
        self._platform = platform
        self._oauth = oauth
        self._bulks = bulks

    async def token(self, request: Request) -> Response:
        raw = await request.body()
        try:
            params = _params(request, raw)
            answer = self._oauth.answer(request.path_params["shop"], params)
        except OAuthRefusal as refusal:
            return JSONResponse(refusal.body, refusal.status)
        return JSONResponse(answer)

    async def result(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = self._bulks.directory / name
        if not re.fullmatch(r"[0-9]+-[0-9a-f]{32}\.jsonl", name) or not path.is_file():
            return PlainTextResponse("NoSuchKey", 404)
        return FileResponse(path, media_type="application/jsonl")

    async def storefront(self, request: Request) -> Response:
        """Pass a visitor's request on to the app, signed, without cookies."""
        domain = request.path_params["shop"]
        if self._platform.find_shop(domain) is None:
            return PlainTextResponse("Not Found", 404)
        headers = {name: value for name, value in request.headers.items() if name not in _NOT_PASSED}
        headers |= {
            "X-Forwarded-Host": domain,
            "X-Forwarded-For": request.client.host if request.client else "127.0.0.1",
        }
        params = parse_qsl(request.url.query, keep_blank_values=True)
        try:
            answer = await app_proxy.ask_app(self._platform, domain, request.path_params["path"], params, headers)
        except httpx2.HTTPError:
            return PlainTextResponse("The app did not answer.", 502)
        passed = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_PASSED}
        return Response(answer.content, answer.status_code, passed)


def _params(request: Request, raw: bytes) -> Mapping[str, Any]:
    if len(raw) > MAX_BODY_BYTES:
        raise OAuthRefusal("invalid_request", "The request is too large.", 413)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json":
            content: Any = json.loads(raw)
            if isinstance(content, dict):
                return cast(dict[str, Any], content)
        if kind == "application/x-www-form-urlencoded":
            return {name: values[-1] for name, values in parse_qs(raw.decode(), max_num_fields=30).items()}
    except ValueError as error:
        raise OAuthRefusal("invalid_request", "The body of the request cannot be read.") from error
    raise OAuthRefusal("invalid_request", "The body of the request has to be an object, as JSON or as a form.")
