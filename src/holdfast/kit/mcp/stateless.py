"""The protocol since 2026-07-28: every request carries its version and capabilities, and is answered on its own.

Proxies read the headers, which must agree with the body. So both are compared before anything is run.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET, Raw, UnsetType

from holdfast.kit.caller import Caller
from holdfast.kit.handler import Headers, Reply
from holdfast.kit.mcp import jsonrpc as rpc
from holdfast.kit.mcp.model import Agents, Change
from holdfast.kit.mcp.resources import Resources
from holdfast.kit.mcp.streams import Authenticated, Stream, notices
from holdfast.kit.mcp.tools import Tools
from holdfast.kit.streams import event

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
LISTEN = "subscriptions/listen"
NAMED: Mapping[str, Callable[[rpc.Params], str | UnsetType]] = {
    "tools/call": lambda params: params.name,
    "resources/read": lambda params: params.uri,
}
"""Methods whose subject is repeated in the header Mcp-Name."""


class Discovery(rpc.Cacheable, kw_only=True, rename="camel"):
    supported_versions: Sequence[str]
    capabilities: Mapping[str, object]
    instructions: str


class Stateless:
    """Answers the messages of this era.

    versions    every revision the endpoint knows, newest first
    """

    def __init__(self, agents: Agents, tools: Tools, resources: Resources, versions: Sequence[str]) -> None:
        self._agents = agents
        self._resources = resources
        self._versions = versions
        self._about = Raw(rpc.encode({"io.modelcontextprotocol/serverInfo": agents.identity}))
        self._methods: rpc.Methods = {"server/discover": self.discover, **tools.methods, **resources.methods}

    async def discover(self, caller: Caller, params: rpc.Params) -> rpc.Work:
        discovery = Discovery(
            supported_versions=self._versions,
            capabilities=self._agents.capabilities,
            instructions=self._agents.instructions,
        )
        return rpc.done("server/discover", discovery)

    async def answer(
        self,
        caller: Caller,
        message: rpc.Message | rpc.Response,
        headers: Headers,
        repeated: Sequence[bytes],
        authenticated: Authenticated,
    ) -> Reply | Stream:
        """The answer to one message. Raises a `Problem` that is answered with its HTTP status."""
        if isinstance(message, rpc.Response):
            return self.refusal(rpc.Fault(rpc.INVALID_REQUEST, "Nothing was asked, so there is nothing to respond to."))
        if not message.wants_answer:
            return Reply(202)
        try:
            self._check(message, headers, repeated)
            if message.method == LISTEN and self._agents.changes:
                return await self._listen(caller, message, authenticated)
            method = self._methods.get(message.method)
            if method is None:
                raise rpc.Fault(rpc.METHOD_NOT_FOUND, f"{VERSION} has no method {message.method} here.")
            result = await rpc.perform(await method(caller, message.params))
            return Reply(200, rpc.encode(rpc.Success(message.id, self._complete(result))))
        except rpc.Fault as fault:
            return self.refusal(fault, message)

    def _complete(self, result: rpc.Result) -> rpc.Result:
        result.result_type = "complete"
        result.about = self._about
        if isinstance(result, rpc.Cacheable):
            result.cache_scope = "private"
        return result

    def refusal(self, fault: rpc.Fault, message: rpc.Message | None = None) -> Reply:
        """The answer to a message that was refused."""
        return Reply(STATUSES.get(fault.code, 200), rpc.refused(fault, message))

    def _check(self, message: rpc.Message, headers: Headers, repeated: Sequence[bytes]) -> None:
        """Raises `Fault` unless a request has a known version and capabilities, and its headers agree with its body."""
        if message.id is None:
            raise rpc.Fault(rpc.INVALID_REQUEST, "An id is a string or an integer.")
        if repeated:
            raise rpc.Fault(HEADER_MISMATCH, f"The header {repeated[0].decode()} is sent more than once.")
        about, version = message.params.about, _text(headers, b"mcp-protocol-version")
        if isinstance(about.protocol_version, UnsetType):
            raise _lacking("protocolVersion") if version in self._versions else self._unsupported(version)
        if isinstance(about.client_capabilities, UnsetType):
            raise _lacking("clientCapabilities")
        _compare("MCP-Protocol-Version", version, about.protocol_version)
        _compare("Mcp-Method", _text(headers, b"mcp-method"), message.method)
        subject = NAMED[message.method](message.params) if message.method in NAMED else UNSET
        if not isinstance(subject, UnsetType):
            _compare("Mcp-Name", _decoded(_text(headers, b"mcp-name")), subject)
        if version != VERSION:
            raise self._unsupported(version)

    def _unsupported(self, version: str | None) -> rpc.Fault:
        data = {"supported": self._versions, "requested": version or ""}
        return rpc.Fault(UNSUPPORTED_VERSION, f"Requests like this one are answered in {VERSION}.", data)

    async def _listen(self, caller: Caller, message: rpc.Message, authenticated: Authenticated) -> Stream:
        """A stream of those of the requested notifications that the caller may receive."""
        wanted = message.params.notifications
        if isinstance(wanted, UnsetType):
            raise rpc.Fault(rpc.INVALID_PARAMS, "`params.notifications` is required.")
        assert self._agents.changes
        feed = await self._agents.changes(caller)
        members = {"_meta": {"io.modelcontextprotocol/subscriptionId": message.id}}
        uris = [uri for uri in wanted.resource_subscriptions if self._resources.may_read(caller, uri)]
        followed = frozenset(uris)
        wants_list = wanted.resources_list_changed and self._resources.lists(caller)
        granted = {
            **({"resourcesListChanged": True} if wants_list else {}),
            **({"resourceSubscriptions": uris} if wanted.resource_subscriptions else {}),
        }

        def render(caller: Caller, changes: Sequence[Change] | None, _: int) -> bytes:
            changed = [Change(uris, listed=True)] if changes is None else changes
            updated = [uri for uri in self._resources.readable(caller, changed) if uri in followed]
            listed = wants_list and self._resources.lists(caller) and any(each.listed for each in changed)
            return b"".join(map(event, notices(updated, listed, **members)))

        granted_notice = rpc.Notification(
            "notifications/subscriptions/acknowledged", {"notifications": granted, **members}
        )
        last = rpc.Success(message.id, {"resultType": "complete", **members})
        return Stream(
            feed,
            authenticated,
            render,
            first=event(rpc.encode(granted_notice)),
            since=feed.position,
            missed=self._agents.missed,
            last=event(rpc.encode(last)),
        )


def _lacking(member: str) -> rpc.Fault:
    return rpc.Fault(rpc.INVALID_PARAMS, f"`params._meta` lacks io.modelcontextprotocol/{member}.")


def _text(headers: Headers, name: bytes) -> str | None:
    """The value of a header without the blanks around it, which some servers do not remove."""
    value = headers.get(name)
    if value is None:
        return None
    try:
        return value.strip(b" \t").decode("ascii")
    except UnicodeDecodeError as error:
        raise rpc.Fault(
            HEADER_MISMATCH, f"The header {name.decode()} has characters that no header may have."
        ) from error


def _decoded(value: str | None) -> str | None:
    """The text in a header, which is Base64 if it has characters that no header may have."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise rpc.Fault(HEADER_MISMATCH, "The header Mcp-Name is not valid Base64 of UTF-8.") from error


def _compare(name: str, sent: str | None, meant: str) -> None:
    if sent is None:
        raise rpc.Fault(HEADER_MISMATCH, f"The header {name} is required.")
    if sent != meant:
        raise rpc.Fault(HEADER_MISMATCH, f"The header {name} says {sent!r}, the body {meant!r}.")
