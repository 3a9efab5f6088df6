"""JSON-RPC 2.0: reads messages, admits and runs methods, writes answers and refusals.

A request is admitted or refused first, and only then run: so all messages of a batch are admitted before the first of
them changes anything.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import UNSET, Meta, MsgspecError, Raw, Struct, UnsetType, ValidationError, field

from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, as_problem
from holdfast.kit.problems import INSUFFICIENT_SCOPE, RATE_LIMITED, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.validation import malformed, misfit

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | str | None


class About(Struct, frozen=True):
    """What a request of 2026-07-28 says about itself, in `_meta`."""

    protocol_version: str | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/protocolVersion")
    client_capabilities: dict[str, Any] | UnsetType = field(
        default=UNSET, name="io.modelcontextprotocol/clientCapabilities"
    )


class Wanted(Struct, frozen=True, rename="camel"):
    """Which notifications a subscription asks for."""

    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


class Params(Struct, frozen=True, rename="camel"):
    """All parameters that any method reads; others that a client sends are ignored."""

    about: About = field(default=About(), name="_meta")
    protocol_version: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: Raw = Raw(b"{}")
    uri: str | UnsetType = UNSET
    cursor: str | None = None
    notifications: Wanted | UnsetType = UNSET


NONE = Params()


class Message(Struct, frozen=True):
    """A request or, without an id, a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: Id | UnsetType = UNSET
    sent: Params | None = field(default=None, name="params")

    @property
    def params(self) -> Params:
        return self.sent or NONE

    @property
    def wants_answer(self) -> bool:
        return self.id is not UNSET

    @property
    def is_stateless(self) -> bool:
        """Whether it carries its protocol version itself, as requests do since 2026-07-28."""
        return self.params.about.protocol_version is not UNSET


class Response(Struct, frozen=True):
    """An answer that a client posts. The service never sends a request, so it ignores or refuses answers."""


class Fault(Exception):
    """Raised for an error of JSON-RPC. `id` is used when the error is found before the message could be read."""

    def __init__(self, code: int, message: str, data: Any = UNSET, *, id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class Success(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id | UnsetType
    result: Any


class Failure(Struct, frozen=True):
    code: int
    message: str
    data: Any = UNSET


class Refusal(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id | UnsetType
    error: Failure


class Notification(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any = UNSET


encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode


def refused(fault: Fault, message: Message | Response | None = None) -> bytes:
    """The error response for a fault in a message, or in a body that is no message."""
    id = message.id if isinstance(message, Message) else fault.id
    return encode(Refusal(id, Failure(fault.code, fault.message, fault.data)))


def unicode(body: bytes) -> str:
    """The text of a body. Raises a `PARSE_ERROR`: JSON is UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Fault(PARSE_ERROR, f"The body is not UTF-8: {error.reason}.") from error


def read(text: str | Raw) -> Message | Response:
    """The message in a text. If the fast decoder fails, the slow path finds the error. Raises `Fault`."""
    try:
        return _decode(text)
    except (MsgspecError, RecursionError) as error:
        return _read_carefully(text, error)


def _read_carefully(text: str | Raw, error: Exception) -> Message | Response:
    value = anything(text)
    if not isinstance(value, dict):
        raise Fault(INVALID_REQUEST, "A message is a JSON object.")
    members = cast(dict[str, Any], value)
    if "method" not in members and ("result" in members or "error" in members):
        return Response()
    try:
        message = msgspec.convert({**members, "params": None}, Message)
    except ValidationError as wrong:
        raise Fault(INVALID_REQUEST, _said(wrong, members), id=_readable_id(members)) from wrong
    if not message.wants_answer:
        return message  # the parameters of a notification are not used
    raise Fault(INVALID_PARAMS, _said(error, members), id=_readable_id(members)) from error


def _said(error: Exception, members: dict[str, Any]) -> str:
    """The error that a decoder found, and where."""
    if not isinstance(error, ValidationError):
        return f"The message cannot be read: {malformed(error)}."
    place, message = misfit(error, Message, members)
    return f"`{place.removeprefix('.') or 'message'}` {message}."


def _readable_id(members: dict[str, Any]) -> Id:
    try:
        return msgspec.convert(members.get("id"), Id)
    except ValidationError:
        return None


def read_items(text: str) -> list[Raw]:
    """The messages of a batch, each not decoded yet. Raises `Fault`."""
    try:
        return _decode_items(text)
    except (MsgspecError, RecursionError) as error:
        raise Fault(PARSE_ERROR, f"The body is not valid JSON: {malformed(error)}.") from error


def anything(text: str | Raw) -> Any:
    """The JSON value in a text. Raises a `PARSE_ERROR`."""
    try:
        return msgspec.json.decode(text)
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Fault(PARSE_ERROR, f"The body is not valid JSON: {malformed(error)}.") from error


OVER_HTTP = (INSUFFICIENT_SCOPE, RATE_LIMITED, SERVICE_UNAVAILABLE)
"""Problems that become the HTTP status of the answer: clients and proxies know how to handle these."""

DEFINITIONS_LAST = 300_000
"""Milliseconds for which clients may cache results that only a new release changes."""


class Result(Struct, kw_only=True, rename="camel"):
    """The result of a method. Only 2026-07-28 has the first two members."""

    result_type: str | UnsetType = UNSET
    about: Raw | UnsetType = field(default=UNSET, name="_meta")


class Cacheable(Result, kw_only=True, rename="camel"):
    """A result that clients may cache; only 2026-07-28 has these members."""

    ttl_ms: int | UnsetType = DEFINITIONS_LAST
    cache_scope: str | UnsetType = UNSET


class Outcome(NamedTuple):
    """A result or a refusal, and the HTTP status that the same outcome has over REST. Metrics count by that status."""

    result: Result | Fault | Problem
    status: int = 200


class Work(NamedTuple):
    """A request that was admitted, ready to run."""

    access: Access
    run: Callable[[], Awaitable[Outcome]]


Method: TypeAlias = Callable[[Caller, Params], Awaitable[Work]]
"""Admits a request. Raises `Fault`, or a `Problem` that is answered with its HTTP status. It changes nothing yet."""

Methods: TypeAlias = Mapping[str, Method]

named = cache(Access)
"""The access of a method, by its name."""


def done(name: str, result: Result) -> Work:
    """The work of a method whose answer is known already."""

    async def run() -> Outcome:
        return Outcome(result)

    return Work(named(name), run)


def required(value: str | UnsetType, name: str) -> str:
    """The value of a required parameter. Raises `Fault` if it is missing."""
    if isinstance(value, UnsetType):
        raise Fault(INVALID_PARAMS, f"`params.{name}` is required.")
    return value


async def perform(work: Work) -> Result:
    """Run and measure admitted work. Raises `Fault`, or a `Problem` that is answered with its HTTP status."""
    started = time.perf_counter()
    try:
        outcome = await work.run()
    except Fault as fault:
        outcome = Outcome(fault, 400)
    except Exception as error:
        outcome = _refused(as_problem(error, work.access))
    work.access.count(outcome.status, started)
    if isinstance(outcome.result, Result):
        return outcome.result
    raise outcome.result


def _refused(problem: Problem) -> Outcome:
    told_over_http = problem.type in OVER_HTTP
    code = INTERNAL_ERROR if problem.status == 500 else INVALID_PARAMS
    return Outcome(problem if told_over_http else as_fault(problem, code), problem.status)


def as_fault(problem: Problem, code: int) -> Fault:
    """A problem as a JSON-RPC error."""
    return Fault(code, problem.message, {"code": problem.code, "hint": problem.hint, **problem.extra})
