"""Answers that are always the same: documents, scripts, signs of life. The table gives them without the framework."""

from collections.abc import Callable, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.kit.http.handler import Header, Headers, Reply, Request


class ConstantAnswer:
    """An ASGI application that gives one of a few replies, which the headers of a request choose.

    reply        returns the reply to GET and HEAD
    preflight    the headers of the answer to OPTIONS, which says who may read the document
    """

    def __init__(self, reply: Callable[[Headers], Reply], preflight: Sequence[Header] = ()) -> None:
        self._reply = reply
        self._preflight = preflight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = {}
        for name, value in scope["headers"]:
            headers[name] = headers[name] + b", " + value if name in headers else value
        request = Request(scope, receive, send, headers)
        reply = Reply(204, headers=self._preflight) if request.method == "OPTIONS" else self._reply(headers)
        await reply.send(request)

    def before(self, otherwise: ASGIApp) -> ASGIApp:
        """An application that gives this answer to GET and HEAD, and passes other methods on."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await (self if scope.get("method") in {"GET", "HEAD"} else otherwise)(scope, receive, send)

        return answer


def always(content: bytes, media_type: bytes, *headers: Header) -> ConstantAnswer:
    """An answer that depends on nothing."""
    reply = Reply(200, content, headers, media_type)
    return ConstantAnswer(lambda _: reply)


def has_version(condition: bytes, etag: bytes) -> bool:
    """Whether an `If-None-Match` names this tag (RFC 9110, section 13.1.2)."""
    tags = {tag.strip().removeprefix(b"W/") for tag in condition.split(b",")}
    return not tags.isdisjoint({etag, b"*"})
