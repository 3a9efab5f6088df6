"""The route of `/metrics`: for programs with the token, or for those on the same machine.

A proxy on the same machine adds a header to the requests that it forwards. Requests with such a header are refused.
"""

import hmac
from ipaddress import ip_address

from holdfast.kit.environment import metrics
from holdfast.kit.http.answers import PlainEndpoint
from holdfast.kit.http.handler import NO_STORE, Reply, Request
from holdfast.kit.http.index import Route

PROXY_HEADERS = {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}
"""Headers that proxies add."""

METRICS_CLOSED = (
    "/metrics answers programs on the same machine only, and none through a proxy. To read it from elsewhere, set"
    " METRICS_TOKEN on the service and send it as `Authorization: Bearer …`.\n"
)
METRICS_REFUSED = "Send the METRICS_TOKEN of this service as `Authorization: Bearer …`.\n"
TEXT = b"text/plain; charset=utf-8"


def metrics_route(token: str) -> Route:
    """The route of `/metrics`. `token`: the required token; empty: only programs on the same machine may read it."""

    def answer(request: Request) -> Reply:
        if token and not _has_token(request, token):
            return Reply(401, METRICS_REFUSED.encode(), [NO_STORE, (b"www-authenticate", b"Bearer")], TEXT)
        if not token and not _is_local(request):
            return Reply(403, METRICS_CLOSED.encode(), [NO_STORE], TEXT)
        return Reply(200, metrics.exposition(), [NO_STORE], metrics.CONTENT_TYPE.encode())

    return Route("/metrics", PlainEndpoint(answer))


def _has_token(request: Request, token: str) -> bool:
    scheme, _, sent_token = request.headers.get(b"authorization", b"").partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(sent_token.strip(), token.encode())


def _is_local(request: Request) -> bool:
    client = request.scope.get("client")
    if client is None or PROXY_HEADERS & request.headers.keys():
        return False
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False
