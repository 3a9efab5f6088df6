"""The REST door: the table of operations as HTTP.

A request becomes a command (`decode.py`), the answer becomes the envelope, a `Problem` becomes the error envelope.
"""

import contextlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from ipaddress import IPv6Address, ip_address

import msgspec
import structlog
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.kit.decode import CommandReader, Headers, read_body, segments
from holdfast.kit.keys import Authenticate
from holdfast.kit.limits import Limits
from holdfast.kit.metrics import REQUEST_SECONDS, REQUESTS
from holdfast.kit.operation import NOBODY, Operation, Operations
from holdfast.kit.problems import BAD_REQUEST, INTERNAL_ERROR, METHOD_NOT_ALLOWED, NOT_FOUND, ErrorBody, Problem
from holdfast.kit.runner import Run, Runner, RunOnce

Header = tuple[bytes, bytes]
Methods = dict[str, "Endpoint"]
Shape = tuple[str | None, ...]
Answer = Callable[[Scope, Receive, Send], Awaitable[int]]
"""Answers a request and returns the status."""

JSON = "application/json"

log = structlog.get_logger()
encode = msgspec.json.Encoder().encode


class Table:
    """The table of operations as an ASGI application: a look-up finds the path, however many there are.

    Beside it stand other doors, each with a path of its own. Whatever else there is goes on to `otherwise`, without
    having paid for its middleware.
    """

    def __init__(
        self,
        operations: Operations,
        runner: Runner,
        authenticate: Authenticate,
        limits: Limits,
        *,
        doors: Mapping[str, ASGIApp],
        otherwise: Starlette,
        error_body: ErrorBody = Problem.body,
    ) -> None:
        self._static: dict[str, Methods] = {}
        self._shaped: dict[Shape, Methods] = {}
        for operation in operations:
            if not operation.route:
                continue
            methods = (
                self._shaped.setdefault(shape(operation.path), {})
                if operation.path_fields
                else self._static.setdefault(operation.path, {})
            )
            once = runner.once(operation) if operation.repeatable else None
            methods[operation.method] = Endpoint(operation, runner[operation], once, authenticate, limits, error_body)
        self._doors = doors
        self.otherwise = otherwise
        self._error_body = error_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        methods = self._find(scope) if scope["type"] == "http" else None
        if methods is None:
            door = self._doors.get(scope["path"], self.otherwise) if scope["type"] == "http" else self.otherwise
            await door(scope, receive, send)
            return
        method = scope["method"]
        # What answers GET answers HEAD; the server leaves out the body.
        if endpoint := methods.get("GET" if method == "HEAD" else method):
            await endpoint(scope, receive, send)
        else:
            problem = METHOD_NOT_ALLOWED(f"{scope['path']} does not answer {method}.")
            allow = (b"allow", ", ".join(sorted({*methods, *({"HEAD"} if "GET" in methods else ())})).encode())
            await respond(send, problem.status, encode(self._error_body(problem)), [allow])

    def _find(self, scope: Scope) -> Methods | None:
        if methods := self._static.get(scope["path"]):
            return methods
        parts = segments(scope)
        for each, methods in self._shaped.items():
            if len(each) == len(parts) and all(map(fits, parts, each)):
                return methods
        return None


def shape(path: str) -> Shape:
    """A path of the table, part by part, with None where a field of the command stands."""
    return tuple(None if part.startswith("{") else part for part in path.split("/"))


def fits(part: str, literal: str | None) -> bool:
    return part == literal if literal is not None else part != ""


class Endpoint:
    """One operation over HTTP.

    once    how it is run for requests with an Idempotency-Key; None: it takes none
    """

    def __init__(
        self,
        operation: Operation,
        run: Run,
        once: RunOnce | None,
        authenticate: Authenticate,
        limits: Limits,
        error_body: ErrorBody,
    ) -> None:
        self._operation = operation
        self._run = run
        self._once = once
        self._authenticate = authenticate
        self._error_body = error_body
        self._limits = limits
        self._command = CommandReader(operation)
        self._wrap = not (operation.bare or operation.paged)
        self._observe = REQUEST_SECONDS.labels(operation.name).observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        operation = self._operation
        extra: Sequence[Header] = ()
        try:
            headers = dict(scope["headers"])
            caller = NOBODY if operation.public else await self._authenticate(api_key(headers))
            if operation.limit:
                await self._limits.hit(operation.limit, address(scope) if operation.public else caller.counted_as)
            body = await read_body(headers, receive) if operation.takes_body else b""
            command = self._command(scope, body)
            if self._once and IDEMPOTENCY_KEY in headers:
                answer = await self._once(caller, command, idempotency_key(headers))
            else:
                answer = await self._run(caller, command)
            status = operation.status
            content = b"" if answer is None else encode({"data": answer} if self._wrap else answer)
        except Exception as error:
            problem = error if isinstance(error, Problem) else unexpected(error, operation.name)
            status, extra, content = problem.status, headers_of(problem), encode(self._error_body(problem))
        await respond(send, status, content, extra)
        self._observe(time.perf_counter() - started)
        answered(operation.name, status).inc()


class Door:
    """An endpoint beside the table, written by hand: it is refused, measured and logged like the rest.

    answer    answers a request and returns the status; a `Problem` it raises instead becomes the error envelope
    headers   what its refusals carry too
    """

    def __init__(
        self,
        name: str,
        answer: Answer,
        error_body: ErrorBody,
        *,
        methods: Sequence[str] = ("GET", "HEAD"),
        headers: Sequence[Header] = (),
    ) -> None:
        self._name = name
        self._methods = methods
        self._answer = answer
        self._error_body = error_body
        self._headers = headers
        self._observe = REQUEST_SECONDS.labels(name).observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        try:
            if scope["method"] not in self._methods:
                raise METHOD_NOT_ALLOWED(f"{scope['path']} does not answer {scope['method']}.")
            status = await self._answer(scope, receive, send)
        except Exception as error:
            problem = error if isinstance(error, Problem) else unexpected(error, self._name)
            status, extra = problem.status, [*self._headers, *headers_of(problem)]
            allow: list[Header] = [(b"allow", ", ".join(self._methods).encode())] if status == 405 else []
            await respond(send, status, encode(self._error_body(problem)), [*extra, *allow])
        self._observe(time.perf_counter() - started)
        answered(self._name, status).inc()


@cache
def answered(operation: str, status: int) -> Counter:
    return REQUESTS.labels(operation, str(status))


def address(scope: Scope) -> str:
    """Where a request comes from, as throttles count: an IPv4 address, an IPv6 network of /64, or a local socket."""
    if not scope.get("client"):
        return "a local socket"
    host = scope["client"][0]
    with contextlib.suppress(ValueError):
        ip = ip_address(host)
        if isinstance(ip, IPv6Address) and not ip.ipv4_mapped:
            return f"network {int(ip) >> 64:x}"
    return f"address {host}"


def api_key(headers: Headers) -> str | None:
    """The raw key of a request: X-API-Key, or else a bearer token."""
    if key := headers.get(b"x-api-key"):
        return key.decode("latin-1")
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


IDEMPOTENCY_KEY = b"idempotency-key"
_PRINTABLE = re.compile(r"[ -~]{1,255}")


def idempotency_key(headers: Headers) -> str:
    """The key in the header that makes a request repeatable. Raises `bad_request`."""
    key = headers[IDEMPOTENCY_KEY].decode("latin-1").strip()
    if not _PRINTABLE.fullmatch(key):
        raise BAD_REQUEST(
            "The Idempotency-Key cannot be one.", hint="Send 1 to 255 printable ASCII characters, best a random UUID."
        )
    return key


def headers_of(problem: Problem) -> Sequence[Header]:
    """What HTTP wants beside the envelope: Retry-After, the challenge of a 401."""
    extra: list[Header] = []
    if problem.retry_after is not None:
        extra.append((b"retry-after", str(problem.retry_after).encode()))
    if problem.status == 401:
        extra.append((b"www-authenticate", b'Bearer realm="API key"'))
    return extra


def unexpected(error: Exception, operation: str) -> Problem:
    """A fault of ours: logged with an id, told without details."""
    request_id = secrets.token_hex(8)
    log.error("request failed", operation=operation, request_id=request_id, exc_info=error)
    return INTERNAL_ERROR(request_id=request_id)


async def respond(
    send: Send, status: int, content: bytes, extra: Sequence[Header] = (), kind: bytes = b"application/json"
) -> None:
    """One answer, of JSON if nothing else is said; without content it has no body."""
    headers = [(b"cache-control", b"no-store"), *extra]
    if content:
        headers += [(b"content-type", kind), (b"content-length", str(len(content)).encode())]
    elif status != 204:
        headers.append((b"content-length", b"0"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def problem_response(error_body: ErrorBody) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The envelope for a `Problem` that a plain route raises."""

    async def refused(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, Problem)
        response = Response(encode(error_body(problem)), problem.status, {"cache-control": "no-store"}, JSON)
        response.raw_headers.extend(headers_of(problem))
        return response

    return refused


def refusal(error_body: ErrorBody) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The envelope for what the router itself refuses: unknown paths, and wrong methods on plain routes."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = METHOD_NOT_ALLOWED if error.status_code == 405 else NOT_FOUND
        problem = kind(f"{request.method} {request.url.path} leads nowhere.")
        headers = {**(error.headers or {}), "cache-control": "no-store"}
        return Response(encode(error_body(problem)), problem.status, headers, JSON)

    return refused
