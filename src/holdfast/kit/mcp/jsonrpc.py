"""JSON-RPC 2.0: messages read and told apart, answers and refusals written."""

from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, Meta, MsgspecError, Raw, Struct, UnsetType, ValidationError, field

from holdfast.kit.command import readable

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
    """Every parameter that any method reads; whatever else a client sends is ignored."""

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
        """Whether it describes itself, as requests do since 2026-07-28."""
        return self.params.about.protocol_version is not UNSET


class Response(Struct, frozen=True):
    """An answer a client posts, to a question nobody here ever asks."""


class Fault(Exception):
    """Raised for whatever JSON-RPC calls an error. `id` is for those found before there is a message."""

    def __init__(self, code: int, message: str, data: Any = UNSET, *, id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class Answer(Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
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
    """What tells of a fault in a message, or in what was to be one."""
    id = message.id if isinstance(message, Message) else fault.id
    return encode(Refusal(id, Failure(fault.code, fault.message, fault.data)))


def unicode(body: bytes) -> str:
    """The text of a body. Raises a `PARSE_ERROR`: JSON is UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Fault(PARSE_ERROR, f"The body is not UTF-8: {error.reason}.") from error


def read(text: str | Raw) -> Message | Response:
    """The message in a text: at once when it is sound, else with care for what is wrong. Raises `Fault`."""
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
        raise Fault(INVALID_REQUEST, _said(wrong), id=_readable_id(members)) from wrong
    if not message.wants_answer:
        return message  # nobody reads what a notification carries
    raise Fault(INVALID_PARAMS, _said(error), id=_readable_id(members)) from error


def _said(error: Exception) -> str:
    """What a decoder found, and where."""
    what, _, where = str(error).partition(" - at `$.")
    return f"`{where.rstrip('`')}`: {readable(what)}." if where else f"{what}."


def _readable_id(members: dict[str, Any]) -> Id:
    try:
        return msgspec.convert(members.get("id"), Id)
    except ValidationError:
        return None


def read_items(text: str) -> list[Raw]:
    """The messages of a batch, each still to be read. Raises `Fault`."""
    try:
        return _decode_items(text)
    except (MsgspecError, RecursionError) as error:
        raise Fault(PARSE_ERROR, f"The body is not valid JSON: {error}.") from error


def anything(text: str | Raw) -> Any:
    """Whatever JSON a text holds. Raises a `PARSE_ERROR`."""
    try:
        return msgspec.json.decode(text)
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Fault(PARSE_ERROR, f"The body is not valid JSON: {error}.") from error
