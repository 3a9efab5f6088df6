"""The route `/metrics`, for callers with the token, or, if none is set, for programs on the same machine.

A proxy on the same machine adds a header to the requests that it forwards. Requests with such a header are refused.
"""

import hmac
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from holdfast.kit.environment import metrics

PROXY_HEADERS = {"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"}
"""Headers that proxies add."""

CLOSED = (
    "/metrics answers programs on the same machine only, and nobody through a proxy. To read it from elsewhere, set"
    " METRICS_TOKEN on the service and send it as `Authorization: Bearer …`.\n"
)
WRONG = "Send the METRICS_TOKEN of this service as `Authorization: Bearer …`.\n"
NOT_KEPT = {"Cache-Control": "no-store"}


def route(token: str) -> Route:
    """The route of `/metrics`. `token`: the required token; empty: only programs on the same machine may read it."""

    async def answer(request: Request) -> Response:
        if token and not _has_token(request, token):
            return PlainTextResponse(WRONG, 401, {**NOT_KEPT, "WWW-Authenticate": "Bearer"})
        if not token and not _is_local(request):
            return PlainTextResponse(CLOSED, 403, NOT_KEPT)
        return Response(metrics.exposition(), headers=NOT_KEPT, media_type=metrics.CONTENT_TYPE)

    return Route("/metrics", answer)


def _has_token(request: Request, token: str) -> bool:
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), token.encode())


def _is_local(request: Request) -> bool:
    if request.client is None or PROXY_HEADERS & {*request.headers.keys()}:
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False
