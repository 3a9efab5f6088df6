"""Handles the requests of all interfaces: authentication, scope, rate limits, errors, and metrics.

Interfaces (REST, MCP, pages) differ in how they authenticate and in how they render an answer or a `Problem`. What
each client may read without a limit, such as a style sheet, is a `PlainEndpoint` (`answers.py`) instead.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol, Self, TypeVar
from urllib.parse import parse_qsl

import msgspec
import structlog
from msgspec import Struct
from starlette.requests import cookie_parser
from starlette.types import Receive, Scope, Send

from holdfast.kit.contract import problems
from holdfast.kit.contract.caller import Caller, stranger
from holdfast.kit.contract.client import address
from holdfast.kit.environment.metrics import RequestMetrics
from holdfast.kit.operations.operation import Operation
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner

Header = tuple[bytes, bytes]
Headers = dict[bytes, bytes]

JSON = b"application/json"

ARRIVED = "holdfast.arrived"
"""In the scope of an HTTP request that has arrived with its whole body, so that reading it does not wait."""

ANSWER = "holdfast.answer"
"""In the scope of an HTTP request: `async (status, headers, content)` writes an answer as one piece. Only our own
server provides it.
"""

log = structlog.get_logger()
encode = msgspec.json.Encoder().encode


class AnswerWithStatus(Protocol):
    """The answer of any interface, with the status that it has over HTTP."""

    @property
    def status(self) -> int: ...


T = TypeVar("T", bound=AnswerWithStatus)


class Access:
    """The name of a handler in logs and metrics, and what it requires of callers.

    scope                   the scope that callers must have
    limits                  the names of the rate limits that a request counts against
    counts_only_refusals    only refusals are counted under this name: inner handlers count the rest under theirs
    require_capacity        raises `service_unavailable` if the process has too much work for it, or the tenant
    """

    def __init__(
        self,
        name: str,
        scope: str | None = None,
        *limits: str | None,
        counts_only_refusals: bool = False,
        require_capacity: Callable[[int | None], None] = lambda tenant: None,
    ) -> None:
        self.name = name
        self._metrics = RequestMetrics(name)
        self.require_capacity = require_capacity
        self.counts_only_refusals = counts_only_refusals
        self.scope = scope
        self.limits = [limit for limit in limits if limit]

    @classmethod
    def of(cls, operation: Operation, runner: Runner) -> Self:
        """What an operation requires."""
        require_capacity = partial(runner.admission.require_capacity, operation.priority)
        return cls(operation.name, operation.scope, operation.limit, require_capacity=require_capacity)

    def count(self, status: int, started_at: float) -> None:
        if not self.counts_only_refusals or status >= 400:
            self._metrics.add(status, time.perf_counter() - started_at)


async def handle(
    access: Access,
    limits: Limits,
    authenticate: Callable[[], Awaitable[Caller]],
    answer: Callable[[Caller], Awaitable[T]],
    refuse: Callable[[problems.Problem], T],
) -> T:
    """Answer one request, or refuse it, and count it."""
    started_at = time.perf_counter()
    admitted_caller: Caller | None = None
    try:
        # Before anything is looked up or read: under overload a refusal must cost little.
        access.require_capacity(None)
        caller = await authenticate()
        if access.scope or access.limits:
            await admit(access, limits, caller)
            admitted_caller = caller
        reply = await answer(caller)
    except Exception as error:
        if admitted_caller:
            for limit in access.limits:
                await limits.count_as_refused(limit, admitted_caller)
        reply = refuse(as_problem(error, access))
    access.count(reply.status, started_at)
    return reply


async def admit(access: Access, limits: Limits, caller: Caller) -> None:
    """Check the capacity and the scope, and count against the rate limits.

    Raises `service_unavailable`, `insufficient_scope` and `rate_limited`.
    """
    access.require_capacity(caller.tenant_id)
    if not caller.has(access.scope):
        raise problems.INSUFFICIENT_SCOPE(f"This needs the scope {access.scope}.", scope=access.scope)
    for limit in access.limits:
        await limits.admit(limit, caller)


def as_problem(error: Exception, access: Access) -> problems.Problem:
    """The problem that was raised. Any other error is logged with an id, and becomes a problem without details."""
    if isinstance(error, problems.Problem):
        return error
    request_id = secrets.token_hex(8)
    log.error("request failed", operation=access.name, request_id=request_id, exc_info=error)
    hint = f"Try again; if it persists, report the request_id {request_id} to the operator."
    return problems.INTERNAL_ERROR(hint=hint, request_id=request_id)


NO_FIELDS: Mapping[str, str] = MappingProxyType({})


class Request(Struct, frozen=True):
    """A request over HTTP.

    fields    the fields of its path by name, decoded
    """

    scope: Scope
    receive: Receive
    send: Send
    headers: Headers
    fields: Mapping[str, str] = NO_FIELDS

    @property
    def method(self) -> str:
        return self.scope["method"]

    @property
    def path(self) -> str:
        return self.scope["path"]

    @property
    def query(self) -> bytes:
        return self.scope["query_string"]

    @property
    def has_arrived(self) -> bool:
        return ARRIVED in self.scope

    @property
    def cookies(self) -> dict[str, str]:
        cookies = [value.decode("latin-1") for name, value in self.scope["headers"] if name == b"cookie"]
        return cookie_parser("; ".join(cookies))


def read_query(query_string: bytes) -> dict[str, str]:
    """The query as names and values. Refuses a name that is given twice."""
    try:
        pairs = parse_qsl(query_string.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError as error:
        raise problems.BAD_REQUEST("The query string cannot be read.") from error
    query = dict(pairs)
    if len(query) != len(pairs):
        names = [name for name, _ in pairs]
        raise problems.invalid({name: ["is given more than once"] for name in query if names.count(name) > 1})
    return query


class Reply(Struct):
    """An answer over HTTP. Without content it has no body."""

    status: int
    content: bytes = b""
    headers: Sequence[Header] = ()
    media_type: bytes = JSON

    async def send(self, request: Request) -> None:
        headers = [NOSNIFF, *self.headers]
        if self.content:
            headers += [(b"content-type", self.media_type), (b"content-length", str(len(self.content)).encode())]
        elif self.status not in {204, 304}:
            headers.append((b"content-length", b"0"))
        # It is removed, since it refers to the scope: a cycle would have to wait for the garbage collector.
        if answer := request.scope.pop(ANSWER, None):
            await answer(self.status, headers, self.content)
        else:
            await request.send({"type": "http.response.start", "status": self.status, "headers": headers})
            await request.send({"type": "http.response.body", "body": self.content})


NO_STORE: Header = (b"cache-control", b"no-store")
NOSNIFF: Header = (b"x-content-type-options", b"nosniff")
"""Makes browsers use the declared media type of an answer, and not guess another."""

RenderProblem = Callable[[problems.Problem, Request], Reply]
"""Renders a problem."""


def envelope(error_body: problems.ErrorBody, *headers: Header) -> RenderProblem:
    """A function that renders problems as JSON, with the headers that HTTP requires."""

    def refuse(problem: problems.Problem, request: Request) -> Reply:
        return Reply(problem.status, encode(error_body(problem)), [NO_STORE, *headers, *headers_of(problem)])

    return refuse


def headers_of(problem: problems.Problem) -> list[Header]:
    """The headers that HTTP requires (Retry-After, Allow with a 405, WWW-Authenticate with a 401), and Link."""
    headers: list[Header] = []
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(problem.retry_after).encode()))
    if problem.link:
        headers.append((b"link", problem.link.encode()))
    if problem.type is problems.METHOD_NOT_ALLOWED:
        headers.append((b"allow", problem.allow.encode()))
    if problem.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="API key"'))
    return headers


async def anonymous(request: Request) -> Caller:
    """The caller without a credential, whom rate limits count by address."""
    return stranger(address(request.scope))


class Handler:
    """An endpoint of one kind of request, written by hand.

    answer          answers a request of a caller, or raises a `Problem`
    refuse          renders a `Problem`
    methods         the HTTP methods it answers
    authenticate    returns the caller; the default needs no credential
    reading         what GET and HEAD require; None: the same as all other methods
    """

    def __init__(
        self,
        access: Access,
        limits: Limits,
        answer: Callable[[Caller, Request], Awaitable[Reply]],
        refuse: RenderProblem,
        *,
        methods: Sequence[str] = ("GET", "HEAD"),
        authenticate: Callable[[Request], Awaitable[Caller]] = anonymous,
        reading: Access | None = None,
    ) -> None:
        self._access = access
        self._reading = reading or access
        self._limits = limits
        self._answer = answer
        self._refuse = refuse
        self.methods = methods
        self._authenticate = authenticate

    async def __call__(self, request: Request) -> Reply:
        async def authenticate() -> Caller:
            # Inside of `handle`, so that a wrong method is refused and counted like other requests.
            require_method(request, self.methods)
            return await self._authenticate(request)

        return await handle(
            self._reading if request.method in {"GET", "HEAD"} else self._access,
            self._limits,
            authenticate,
            lambda caller: self._answer(caller, request),
            lambda problem: self._refusal(problem, request),
        )

    def _refusal(self, problem: problems.Problem, request: Request) -> Reply:
        """The reply with a problem as `refuse` renders it, with the headers that HTTP requires."""
        reply = self._refuse(problem, request)
        present = {name for name, _ in reply.headers}
        reply.headers = [*reply.headers, *(header for header in headers_of(problem) if header[0] not in present)]
        return reply


def require_one_credential(request: Request) -> None:
    """Raises `bad_request` if two headers have different credentials: which one counts would be a guess.

    The Inspector sends the same one twice.
    """
    every_header = request.scope["headers"]
    if len(request.headers) == len(every_header):
        return
    for name in (b"x-api-key", b"authorization"):
        if len({value for header, value in every_header if header == name}) > 1:
            raise problems.BAD_REQUEST(f"The header {name.decode()} is sent with two values.", hint="Send it once.")


def require_method(request: Request, methods: Sequence[str]) -> None:
    """Raises `method_not_allowed`."""
    if request.method not in methods:
        raise method_not_allowed(request.path, request.method, methods)


def method_not_allowed(path: str, method: str, methods: Sequence[str]) -> problems.Problem:
    allowed = ", ".join(methods)
    return problems.METHOD_NOT_ALLOWED(
        f"{path} does not answer {method}.", hint=f"It answers {allowed}.", allow=allowed
    )
