"""The protocol since 2026-07-28: every request has its version and capabilities, and is answered independently.

Proxies read the headers, which must agree with the body. So both are compared before a method is run. An open stream of
changes ends when the credential that opened it is no longer valid.
"""

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.event_streams import EndOfStream, Feed, encode_event
from holdfast.kit.http.handler import Headers, Reply
from holdfast.kit.mcp import jsonrpc as rpc
from holdfast.kit.mcp.jsonrpc import Notification, encode
from holdfast.kit.mcp.model import Change, EndpointConfig
from holdfast.kit.mcp.resources import ResourceMethods
from holdfast.kit.mcp.tools import Tools

Reauthenticate: TypeAlias = Callable[[], Awaitable[Caller]]
"""Authenticates the reader of a stream again at every call. Raises a `Problem`."""

Render: TypeAlias = Callable[[Caller, Sequence[Change] | None, int], bytes]
"""Renders the events for the changes that a caller may read about, up to a position. None instead of changes means that
they are no longer known."""

ReadMissedChanges: TypeAlias = Callable[[Caller, int], Awaitable[Change]]
"""All changes after a position, for a reader whose changes the feed of this process has dropped."""


class ChangeStream:
    """One open stream, which `http.event_streams.Streams` serves.

    first    the bytes that are sent at once
    since    the position in the feed up to which the reader has seen the changes
    missed   returns the changes since then if the feed has dropped them
    last     the bytes that are sent when this process stops
    """

    def __init__(
        self,
        feed: Feed[Change],
        reauthenticate: Reauthenticate,
        render: Render,
        *,
        first: bytes,
        since: int,
        missed: ReadMissedChanges | None = None,
        last: bytes = b"",
    ) -> None:
        self.feed = feed
        self.last = last
        self._reauthenticate = reauthenticate
        self._render = render
        self._first = first
        self._position = since
        self._missed = missed

    async def pending(self) -> bytes:
        """The events to send now. Raises `EndOfStream` if the reader's credential is no longer valid.

        It also raises it if the database cannot return the missed changes; the reader then reconnects.
        """
        try:
            caller = await self._reauthenticate()
            since, self._position = self._position, self.feed.position
            changes = self.feed.since(since)
            if changes is None and self._missed:
                changes = [await self._missed(caller, since)]
        except Problem as problem:
            raise EndOfStream from problem
        first, self._first = self._first, b""
        return first if changes == [] else first + self._render(caller, changes, self._position)


def encode_notifications(uris: Iterable[str], listed: bool, **members: Any) -> list[bytes]:
    """The notifications that resources and, if `listed`, their list changed; each has `members` as parameters."""
    updated = [encode(Notification("notifications/resources/updated", {"uri": uri, **members})) for uri in uris]
    return (
        [*updated, encode(Notification("notifications/resources/list_changed", members or UNSET))]
        if listed
        else updated
    )


VERSION = "2026-07-28"
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
STATUSES = {
    rpc.PARSE_ERROR: 400,
    rpc.INVALID_REQUEST: 400,
    rpc.INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    rpc.METHOD_NOT_FOUND: 404,
}
LISTEN_METHOD = "subscriptions/listen"
HEADER_SUBJECTS: Mapping[str, Callable[[rpc.Params], str | UnsetType]] = {
    "tools/call": lambda params: params.name,
    "resources/read": lambda params: params.uri,
}
"""Methods whose subject the header Mcp-Name repeats."""


class Discovery(rpc.CacheableResult, kw_only=True, rename="camel"):
    supported_versions: Sequence[str]
    capabilities: Mapping[str, object]
    instructions: str


class StatelessProtocol:
    """Answers requests of the protocol 2026-07-28, of which each is complete.

    versions    all revisions that the endpoint knows, newest first
    """

    def __init__(
        self, config: EndpointConfig, tools: Tools, resources: ResourceMethods, versions: Sequence[str]
    ) -> None:
        self._config = config
        self._resources = resources
        self._versions = versions
        self._about = Raw(rpc.encode({"io.modelcontextprotocol/serverInfo": config.identity}))
        self._methods: rpc.Methods = {"server/discover": self.discover, **tools.methods, **resources.methods}

    async def discover(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        discovery = Discovery(
            supported_versions=self._versions,
            capabilities=self._config.capabilities,
            instructions=self._config.instructions,
        )
        return rpc.completed_request("server/discover", discovery)

    async def answer(
        self,
        caller: Caller,
        message: rpc.RpcMessage | rpc.ClientResponse,
        headers: Headers,
        repeated: Sequence[bytes],
        reauthenticate: Reauthenticate,
    ) -> Reply | ChangeStream:
        """The answer to one message. Raises a `Problem` that is answered with its HTTP status."""
        if isinstance(message, rpc.ClientResponse):
            return self.refusal(
                rpc.RpcError(rpc.INVALID_REQUEST, "Nothing was asked, so there is nothing to respond to.")
            )
        if not message.wants_answer:
            return Reply(202)
        try:
            self._check(message, headers, repeated)
            if message.method == LISTEN_METHOD and self._config.changes:
                return await self._listen(caller, message, reauthenticate)
            method = self._methods.get(message.method)
            if method is None:
                raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"{VERSION} has no method {message.method} here.")
            result = await rpc.perform(await method(caller, message.params))
            return Reply(200, rpc.encode(rpc.SuccessResponse(message.answered_id, self._complete(result))))
        except rpc.RpcError as fault:
            return self.refusal(fault, message)

    def _complete(self, result: rpc.Result) -> rpc.Result:
        result.result_type = "complete"
        result.about = self._about
        if isinstance(result, rpc.CacheableResult):
            result.cache_scope = "private"
        return result

    def refusal(self, fault: rpc.RpcError, message: rpc.RpcMessage | None = None) -> Reply:
        """The answer to a refused message."""
        return Reply(STATUSES.get(fault.code, 200), rpc.error_response(fault, message))

    def _check(self, message: rpc.RpcMessage, headers: Headers, repeated: Sequence[bytes]) -> None:
        """Raise `RpcError` unless a request has a known version, capabilities, and headers that agree with its body."""
        if message.answered_id == rpc.NULL:
            raise rpc.RpcError(
                rpc.INVALID_REQUEST, "A request needs an `id`, which is a string or an integer. Nothing was done."
            )
        if repeated:
            raise rpc.RpcError(HEADER_MISMATCH, f"The header {repeated[0].decode()} is sent more than once.")
        about, version = message.params.about, _header_text(headers, b"mcp-protocol-version")
        if isinstance(about.protocol_version, UnsetType):
            raise _missing_meta("protocolVersion") if version in self._versions else self._unsupported(version)
        if isinstance(about.client_capabilities, UnsetType):
            raise _missing_meta("clientCapabilities")
        _require_equal("MCP-Protocol-Version", version, about.protocol_version)
        _require_equal("Mcp-Method", _header_text(headers, b"mcp-method"), message.method)
        subject = HEADER_SUBJECTS[message.method](message.params) if message.method in HEADER_SUBJECTS else UNSET
        if not isinstance(subject, UnsetType):
            _require_equal("Mcp-Name", _decode_name(_header_text(headers, b"mcp-name")), subject)
        if version != VERSION:
            raise self._unsupported(version)

    def _unsupported(self, version: str | None) -> rpc.RpcError:
        data = {"supported": self._versions, "requested": version or ""}
        if version in self._versions:
            message = f"A request with `params._meta` is answered in protocol version {VERSION}, not in {version}."
        else:
            message = f'Protocol version "{version or ""}" is not supported. Send one of {", ".join(self._versions)}.'
        return rpc.RpcError(UNSUPPORTED_VERSION, message, data)

    async def _listen(self, caller: Caller, message: rpc.RpcMessage, reauthenticate: Reauthenticate) -> ChangeStream:
        """A stream of the requested notifications that the caller may receive."""
        requested = message.params.notifications
        if isinstance(requested, UnsetType):
            raise rpc.RpcError(rpc.INVALID_PARAMS, "`params.notifications` is required.")
        assert self._config.changes
        feed = await self._config.changes(caller)
        members = {"_meta": {"io.modelcontextprotocol/subscriptionId": message.answered_id}}
        uris = [uri for uri in requested.resource_subscriptions if self._resources.may_read(caller, uri)]
        followed = frozenset(uris)
        wants_list = requested.resources_list_changed and self._resources.lists(caller)
        granted_notifications = {
            **({"resourcesListChanged": True} if wants_list else {}),
            **({"resourceSubscriptions": uris} if requested.resource_subscriptions else {}),
        }

        def render(caller: Caller, changes: Sequence[Change] | None, _: int) -> bytes:
            all_changes = [Change(uris, listed=True)] if changes is None else changes
            updated = [uri for uri in self._resources.readable(caller, all_changes) if uri in followed]
            listed = wants_list and self._resources.lists(caller) and any(change.listed for change in all_changes)
            return b"".join(map(encode_event, encode_notifications(updated, listed, **members)))

        granted_notice = rpc.Notification(
            "notifications/subscriptions/acknowledged", {"notifications": granted_notifications, **members}
        )
        last = rpc.SuccessResponse(message.answered_id, {"resultType": "complete", **members})
        return ChangeStream(
            feed,
            reauthenticate,
            render,
            first=encode_event(rpc.encode(granted_notice)),
            since=feed.position,
            missed=self._config.missed,
            last=encode_event(rpc.encode(last)),
        )


def _missing_meta(member: str) -> rpc.RpcError:
    return rpc.RpcError(rpc.INVALID_PARAMS, f"`params._meta` lacks io.modelcontextprotocol/{member}.")


def _header_text(headers: Headers, name: bytes) -> str | None:
    """The value of a header without surrounding blanks, which some servers do not remove."""
    value = headers.get(name)
    if value is None:
        return None
    try:
        return value.strip(b" \t").decode("ascii")
    except UnicodeDecodeError as error:
        raise rpc.RpcError(
            HEADER_MISMATCH, f"The header {name.decode()} has characters that no header may have."
        ) from error


def _decode_name(value: str | None) -> str | None:
    """The text in a header. It is in Base64 if it has characters that are not allowed in headers."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise rpc.RpcError(HEADER_MISMATCH, "The header Mcp-Name is not valid Base64 of UTF-8.") from error


def _require_equal(name: str, header: str | None, meant: str) -> None:
    if header is None:
        raise rpc.RpcError(HEADER_MISMATCH, f"The header {name} is required.")
    if header != meant:
        raise rpc.RpcError(HEADER_MISMATCH, f"The header {name} says {header!r}, the body {meant!r}.")
