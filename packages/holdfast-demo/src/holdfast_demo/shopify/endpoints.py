"""The endpoints of a shop for programs: tokens, results of bulk operations, and the proxy of its storefront."""

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qs, parse_qsl, urlencode

import httpx2
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast_demo.shopify.bulk import Bulks
from holdfast_demo.shopify.errors import OAuthRefusal
from holdfast_demo.shopify.oauth import OAuth
from holdfast_demo.shopify.platform_state import PlatformState

PREFIX, SUBPATH = "apps", "holdfast"
PROXY_TIMEOUT_SECONDS = 10
MAX_BODY_BYTES = 100_000

_NOT_PASSED = frozenset(
    {"cookie", "set-cookie", "host", "connection", "content-length", "transfer-encoding", "content-encoding"}
)


def routes(world: PlatformState, oauth: OAuth, bulks: Bulks) -> list[BaseRoute]:
    """The routes for programs."""
    handlers = _Endpoints(world, oauth, bulks)
    return [
        Route("/{shop}/admin/oauth/access_token", handlers.token, methods=["POST"]),
        Route("/{shop}/bulk/{name}", handlers.result),
        Route(f"/{{shop}}/{PREFIX}/{SUBPATH}/{{path:path}}", handlers.storefront),
    ]


class _Endpoints:
    def __init__(self, world: PlatformState, oauth: OAuth, bulks: Bulks) -> None:
        self._world = world
        self._oauth = oauth
        self._bulks = bulks

    async def token(self, request: Request) -> Response:
        raw = await request.body()
        try:
            params = _params(request, raw)
            answer = self._oauth.answer(request.path_params["shop"], params)
        except OAuthRefusal as refused:
            return JSONResponse(refused.body, refused.status)
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
        if self._world.find_shop(domain) is None:
            return PlainTextResponse("Not Found", 404)
        query = self.signed(domain, parse_qsl(request.url.query, keep_blank_values=True))
        url = f"{self._world.app.address}/storefront/{request.path_params['path']}?{query}"
        headers = {name: value for name, value in request.headers.items() if name not in _NOT_PASSED}
        headers |= {
            "X-Forwarded-Host": domain,
            "X-Forwarded-For": request.client.host if request.client else "127.0.0.1",
        }
        transport = self._world.transport
        async with HttpClient(
            timeout=PROXY_TIMEOUT_SECONDS, verify=trusted_certificates(), trust_env=False, transport=transport
        ) as client:
            try:
                answer = await client.get(url, headers=headers)
            except httpx2.HTTPError:
                return PlainTextResponse("The app did not answer.", 502)
        passed = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_PASSED}
        return Response(answer.content, answer.status_code, passed)

    def signed(self, domain: str, params: list[tuple[str, str]]) -> str:
        """A query with the parameters and the signature that the platform adds."""
        parameters = [
            *params,
            ("shop", domain),
            ("logged_in_customer_id", ""),
            ("path_prefix", f"/{PREFIX}/{SUBPATH}"),
            ("timestamp", str(int(self._world.now()))),
        ]
        return urlencode([*parameters, ("signature", signature(parameters, self._world.app.client_secret))])


def signature(params: Sequence[tuple[str, str]], secret: str) -> str:
    """The signature of a request through a storefront: over the sorted parameters without separators."""
    grouped: dict[str, list[str]] = {}
    for name, value in params:
        grouped.setdefault(name, []).append(value)
    message = "".join(sorted(f"{name}={','.join(values)}" for name, values in grouped.items()))
    return hmac.digest(secret.encode(), message.encode(), "sha256").hex()


def _params(request: Request, raw: bytes) -> Mapping[str, Any]:
    if len(raw) > MAX_BODY_BYTES:
        raise OAuthRefusal("invalid_request", "The request is too large.", 413)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json":
            read: Any = json.loads(raw)
            if isinstance(read, dict):
                return cast(dict[str, Any], read)
        if kind == "application/x-www-form-urlencoded":
            return {name: values[-1] for name, values in parse_qs(raw.decode(), max_num_fields=30).items()}
    except ValueError as error:
        raise OAuthRefusal("invalid_request", "The body of the request cannot be read.") from error
    raise OAuthRefusal("invalid_request", "The body of the request has to be an object, as JSON or as a form.")
