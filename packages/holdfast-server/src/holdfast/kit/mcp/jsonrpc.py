"""JSON-RPC 2.0: reads messages, admits and runs methods, writes answers and refusals.

A request is first admitted or refused, and then run: so all messages of a batch are admitted before the first one
changes anything.
"""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, ValidationError, field
from msgspec.structs import replace

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE, RATE_LIMITED, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.contract.validation import json_error, mismatch
from holdfast.kit.http.handler import Access, as_problem

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id: TypeAlias = Raw | None
"""An id as it was sent, to the letter: a string, an integer of any size, or null. None is null too."""

NULL = Raw(b"null")

_PLAIN_ID = re.compile(rb'"[ !#-\[\]-~]*"|-?(?:0|[1-9][0-9]*)|null')
"""Ids that need no closer look."""


class RequestMeta(Struct, frozen=True):
    """The metadata of a request of 2026-07-28, in `_meta`."""

    protocol_version: str | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/protocolVersion")
    client_capabilities: dict[str, Any] | UnsetType = field(
        default=UNSET, name="io.modelcontextprotocol/clientCapabilities"
    )
    client_info: Raw | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/clientInfo")


class SubscriptionFilter(Struct, frozen=True, rename="camel"):
    """The notifications that a subscription requests."""

    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


class Params(Struct, frozen=True, rename="camel"):
    """All parameters that any method reads; other parameters are ignored."""

    about: RequestMeta = field(default=RequestMeta(), name="_meta")
    protocol_version: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    arguments: Raw = Raw(b"{}")
    uri: str | UnsetType = UNSET
    cursor: str | None = None
    notifications: SubscriptionFilter | UnsetType = UNSET
    client_info: Raw | UnsetType = UNSET


NO_PARAMS = Params()


class RpcMessage(Struct, frozen=True):
    """A request or, without an id, a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: Raw | UnsetType = UNSET
    sent_params: Params | None = field(default=None, name="params")

    @property
    def params(self) -> Params:
        return self.sent_params or NO_PARAMS

    @property
    def wants_answer(self) -> bool:
        """Whether it is a request. Without an id it is one too, unless its method is one of notifications."""
        return self.id is not UNSET or not self.method.startswith("notifications/")

    @property
    def answered_id(self) -> Raw:
        """The id of its answer."""
        return NULL if isinstance(self.id, UnsetType) else self.id

    @property
    def is_stateless(self) -> bool:
        """Whether it contains its protocol version, as requests do since 2026-07-28."""
        return self.params.about.protocol_version is not UNSET


class ClientResponse(Struct, frozen=True):
    """An answer that a client posts. The service sends no requests, so it ignores or refuses answers."""


class RpcError(Exception):
    """A JSON-RPC error. `id` is used if the error is found before the message could be read."""

    def __init__(self, code: int, message: str, data: Any = UNSET, *, id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class SuccessResponse(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    result: Any


class ErrorObject(Struct, frozen=True):
    code: int
    message: str
    data: Any = UNSET


class ErrorResponse(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    error: ErrorObject


class Notification(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any = UNSET


encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RpcMessage).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode


def error_response(fault: RpcError, message: RpcMessage | ClientResponse | None = None) -> bytes:
    """The error response for a message, or for a body that is no message."""
    id = message.answered_id if isinstance(message, RpcMessage) else fault.id
    return encode(ErrorResponse(id, ErrorObject(fault.code, fault.message, fault.data)))


def decode_utf8(body: bytes) -> str:
    """The text of a body. Raises `PARSE_ERROR` unless it is UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise RpcError(PARSE_ERROR, f"The body is not UTF-8: {error.reason}.") from error


def read_message(text: str | Raw) -> RpcMessage | ClientResponse:
    """The message in a text. If the fast decoder fails, the slow path describes the error. Raises `RpcError`."""
    try:
        message = _decode(text)
    except (MsgspecError, RecursionError) as error:
        return _read_carefully(text, error)
    if not isinstance(message.id, UnsetType):
        require_id(message.id)
    return message


def require_id(id: Raw) -> None:
    """Raises `RpcError` if an id is no string, integer or null. A number such as 1.0 is an integer."""
    if _PLAIN_ID.fullmatch(id):
        return
    value = decode_json(id)
    if not (isinstance(value, str) or (isinstance(value, float) and value.is_integer())):
        raise RpcError(INVALID_REQUEST, "`id` must be a string, an integer, or null.")


def _read_carefully(text: str | Raw, error: Exception) -> RpcMessage | ClientResponse:
    value = decode_json(text)
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "A message is a JSON object.")
    members = cast(dict[str, Any], value)
    if "method" not in members and ("result" in members or "error" in members):
        return ClientResponse()
    id = _readable_id(text)
    if id is not None:
        require_id(id)
    try:
        rest = {name: value for name, value in members.items() if name != "id"}
        message = msgspec.convert({**rest, "params": None}, RpcMessage)
    except ValidationError as wrong:
        raise RpcError(INVALID_REQUEST, _error_text(wrong, members), id=id) from wrong
    message = replace(message, id=UNSET if id is None else id)
    if not message.wants_answer:
        return message  # the parameters of a notification are not used
    raise RpcError(INVALID_PARAMS, _error_text(error, members), id=id) from error


def _error_text(error: Exception, members: dict[str, Any]) -> str:
    """The text of a decoder's error, with its place."""
    if not isinstance(error, ValidationError):
        return f"The message cannot be read: {json_error(error)}."
    path, message = mismatch(error, RpcMessage, members)
    return f"`{path.removeprefix('.') or 'message'}` {message}."


class _OnlyId(Struct):
    id: Raw | UnsetType = UNSET


def _readable_id(text: str | Raw) -> Id:
    """The id in the text of a JSON object, as it was sent."""
    id = msgspec.json.decode(text, type=_OnlyId).id
    return None if isinstance(id, UnsetType) else id


def read_items(text: str) -> list[Raw]:
    """The undecoded messages of a batch. Raises `RpcError`."""
    try:
        return _decode_items(text)
    except (MsgspecError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"The body is not valid JSON: {json_error(error)}.") from error


def decode_json(text: str | Raw) -> Any:
    """The JSON value in a text. Raises `PARSE_ERROR`."""
    try:
        return msgspec.json.decode(text)
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"The body is not valid JSON: {json_error(error)}.") from error


HTTP_STATUS_PROBLEMS = (INSUFFICIENT_SCOPE, RATE_LIMITED, SERVICE_UNAVAILABLE)
"""Problems that become the HTTP status of the answer, since clients and proxies can handle these."""

DEFINITIONS_TTL_MS = 300_000
"""Milliseconds for which clients may cache results that only a new release changes."""


class Result(Struct, kw_only=True, rename="camel"):
    """The result of a method. The first two members exist only in 2026-07-28."""

    result_type: str | UnsetType = UNSET
    about: Raw | UnsetType = field(default=UNSET, name="_meta")


class CacheableResult(Result, kw_only=True, rename="camel"):
    """A result that clients may cache. These members exist only in 2026-07-28."""

    ttl_ms: int | UnsetType = DEFINITIONS_TTL_MS
    cache_scope: str | UnsetType = UNSET


class CallResult(NamedTuple):
    """A result or an error, and the HTTP status that it has over REST. Metrics count by that status."""

    result: Result | RpcError | Problem
    status: int = 200


class AdmittedRequest(NamedTuple):
    """An admitted request, ready to run."""

    access: Access
    run: Callable[[], Awaitable[CallResult]]


Method: TypeAlias = Callable[[Caller, Params], Awaitable[AdmittedRequest]]
"""Admits a request. Raises `RpcError`, or a `Problem` that is answered with its HTTP status. It changes nothing yet."""

Methods: TypeAlias = Mapping[str, Method]

method_access = cache(Access)
"""The `Access` of a method, by its name."""


def completed_request(name: str, result: Result) -> AdmittedRequest:
    """The admitted request of a method whose answer is already known."""

    async def run() -> CallResult:
        return CallResult(result)

    return AdmittedRequest(method_access(name), run)


def required_param(value: str | UnsetType, name: str) -> str:
    """The value of a required parameter. Raises `RpcError` if it is missing."""
    if isinstance(value, UnsetType):
        raise RpcError(INVALID_PARAMS, f"`params.{name}` is required.")
    return value


async def perform(work: AdmittedRequest) -> Result:
    """Run and measure an admitted request. Raises `RpcError`, or a `Problem` that is answered with its HTTP status."""
    started_at = time.perf_counter()
    try:
        result = await work.run()
    except RpcError as fault:
        result = CallResult(fault, 400)
    except Exception as error:
        result = _result_of_problem(as_problem(error, work.access))
    work.access.count(result.status, started_at)
    if isinstance(result.result, Result):
        return result.result
    raise result.result


def _result_of_problem(problem: Problem) -> CallResult:
    has_http_status = problem.type in HTTP_STATUS_PROBLEMS
    code = INTERNAL_ERROR if problem.status == 500 else INVALID_PARAMS
    return CallResult(problem if has_http_status else as_rpc_error(problem, code), problem.status)


def as_rpc_error(problem: Problem, code: int) -> RpcError:
    """A problem as a JSON-RPC error."""
    return RpcError(code, problem.message, {"code": problem.code, "hint": problem.hint, **problem.extra})
