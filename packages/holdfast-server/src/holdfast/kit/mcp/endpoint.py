"""The MCP endpoint: authentication, the era of a request, and the HTTP status and headers of its answer."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.kit.contract import problems
from holdfast.kit.contract.caller import Caller, stranger
from holdfast.kit.contract.client import address
from holdfast.kit.http.body import read_body
from holdfast.kit.http.event_streams import EventStream, StreamOwner, Streams, encode_event
from holdfast.kit.http.handler import (
    NO_STORE,
    Access,
    Header,
    Headers,
    Reply,
    Request,
    encode,
    handle,
    headers_of,
    require_method,
    require_one_credential,
)
from holdfast.kit.mcp import handshake, stateless
from holdfast.kit.mcp.handshake import Handshake, client_name, name_in_session_id
from holdfast.kit.mcp.jsonrpc import INVALID_REQUEST, RpcError, RpcMessage, decode_utf8, read_items, read_message
from holdfast.kit.mcp.model import EndpointConfig
from holdfast.kit.mcp.resources import ResourceMethods
from holdfast.kit.mcp.stateless import ChangeStream, Reauthenticate, StatelessProtocol
from holdfast.kit.mcp.tools import Tools
from holdfast.kit.operations.operation import Operations
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.security.api_keys import Authenticate, credential

VERSIONS = (stateless.VERSION, *reversed(handshake.VERSIONS))
ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
"""Headers by which proxies route a request. A header that is sent twice would be ambiguous."""

NAME = "mcp"
"""The name of a whole request in logs and metrics; each tool and method has its own name."""

JSON, EVENTS = b"application/json", b"text/event-stream"
HEADERS = (b"accept", b"authorization", b"content-type", b"last-event-id", b"x-api-key", *ROUTING)
PREFLIGHT: Sequence[Header] = (
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b", ".join(HEADERS)),
    (b"access-control-max-age", b"600"),
)
_ZERO_QUALITY = re.compile(rb"q[ \t]*=[ \t]*0(\.0{0,3})?")
_ARRAY = re.compile(r"[ \t\r\n]*\[")


class McpEndpoint:
    """The endpoint. The methods that it answers depend on the version of the protocol."""

    methods = ("GET", "POST")

    def __init__(
        self,
        config: EndpointConfig,
        operations: Operations,
        runner: Runner,
        authenticate: Authenticate,
        limits: Limits,
        streams: Streams,
        error_body: problems.ErrorBody,
    ) -> None:
        self._config = config
        self._authenticate = authenticate
        self._limits = limits
        self._streams = streams
        self._error_body = error_body
        self._access = Access(NAME, None, config.limit, counts_only_refusals=True)
        tools = Tools(operations, runner, limits)
        resources = ResourceMethods(config, operations, runner, limits)
        self._handshake = Handshake(config, tools, resources, limits)
        self._stateless = StatelessProtocol(config, tools, resources, VERSIONS)
        base_parts = urlsplit(config.base_url)
        self._own_origin = f"{base_parts.scheme}://{base_parts.netloc}".encode()
        self._origins = {origin.encode() for origin in config.origins}

    async def __call__(self, request: Request) -> Reply:
        reauthenticate = partial(self._authenticate, credential(request.headers))
        preflight = request.method == "OPTIONS" and request.headers.get(b"origin") in self._origins
        answer = self._post if request.method == "POST" else self._allow if preflight else self._get

        async def authenticate() -> Caller:
            self._require_origin(request)
            if preflight:
                return stranger(address(request.scope))
            require_method(request, self._methods(request.headers))
            require_one_credential(request)
            return await reauthenticate()

        reply = await handle(
            self._access,
            self._limits,
            authenticate,
            partial(answer, request, reauthenticate),
            partial(self._refuse, request),
        )
        reply.headers = [
            *(() if isinstance(reply, EventStream) else (NO_STORE,)),
            *self._cross_origin(request.headers),
            *reply.headers,
        ]
        return reply

    def _refuse(self, request: Request, problem: problems.Problem) -> Reply:
        headers = [header for header in headers_of(problem) if header[0] != b"www-authenticate"]
        if problem.status == 401 or problem.type is problems.INSUFFICIENT_SCOPE:
            headers.append((b"www-authenticate", self._challenge(problem).encode("ascii", "ignore")))
        return Reply(problem.status, encode(self._error_body(problem)), headers)

    def _require_origin(self, request: Request) -> None:
        origin = request.headers.get(b"origin", self._own_origin)
        if origin != self._own_origin and origin not in self._origins:
            raise problems.FORBIDDEN(
                "Pages of this origin may not call the service.", hint="Call from a program or a server."
            )

    def _methods(self, headers: Headers) -> Sequence[str]:
        """The HTTP methods of the path. Streams that are opened with GET exist only in the era of the handshake."""
        listens = self._config.changes and _version(headers) != stateless.VERSION
        return ("GET", "POST") if listens else ("POST",)

    async def _allow(self, request: Request, reauthenticate: Reauthenticate, caller: Caller) -> Reply:
        return Reply(204)

    async def _get(self, request: Request, reauthenticate: Reauthenticate, caller: Caller) -> Reply:
        headers = request.headers
        version = _version(headers)
        if version is not None and version not in handshake.VERSIONS:
            raise problems.BAD_REQUEST(f"Unknown version: {version}.", hint=f"Known: {', '.join(VERSIONS)}.")
        if not accepts(headers, EVENTS):
            raise problems.NOT_ACCEPTABLE("GET opens a stream of events.", hint="Send Accept: text/event-stream.")
        assert self._config.changes
        last = headers.get(b"last-event-id", b"").decode("latin-1")
        stream = self._handshake.stream(await self._config.changes(caller), reauthenticate, version, last)
        return self._open_stream(request, caller, stream)

    async def _post(self, request: Request, reauthenticate: Reauthenticate, caller: Caller) -> Reply:
        headers = request.headers
        as_event = not accepts(headers, JSON)
        if as_event and not accepts(headers, EVENTS):
            raise problems.NOT_ACCEPTABLE()
        answer = await self._answer_message(request, await read_body(request), caller, reauthenticate)
        if isinstance(answer, ChangeStream):
            if not accepts(headers, EVENTS):
                raise problems.NOT_ACCEPTABLE("A subscription is a stream of events.")
            return self._open_stream(request, caller, answer)
        if as_event and answer.status == 200:
            answer.content, answer.media_type = encode_event(answer.content), EVENTS
        return answer

    def _open_stream(self, request: Request, caller: Caller, stream: ChangeStream) -> EventStream:
        """Open a stream. Returns the answer that sends it. Raises `rate_limited` if there are too many."""
        owners: Mapping[StreamOwner, object] = {
            "address": address(request.scope),
            "key": caller.name,
            "tenant": caller.tenant_id,
        }
        self._streams.require_room(owners)
        return EventStream(
            200,
            streams=self._streams,
            name=NAME,
            feed=stream.feed,
            pending=stream.pending,
            last=stream.last,
            owners=owners,
        )

    async def _answer_message(
        self, request: Request, body: bytes, caller: Caller, reauthenticate: Reauthenticate
    ) -> Reply | ChangeStream:
        """The answer to a body, in the era that the body belongs to."""
        headers, every_header = request.headers, request.scope["headers"]
        caller = replace(caller, is_agent=True)
        version = _version(headers)
        repeated = _repeated_headers(every_header) if len(headers) < len(every_header) else ()
        is_handshake_era = (version is None or version in handshake.VERSIONS) and ROUTING[0] not in repeated
        era = self._handshake if is_handshake_era else self._stateless
        try:
            text = decode_utf8(body)
            if _ARRAY.match(text):
                items = read_items(text)
                if is_handshake_era and version in handshake.WITH_BATCHES:
                    return await self._handshake.answer_batch(_with_program(caller, headers), items)
                raise RpcError(INVALID_REQUEST, "This version of the protocol knows no batches: send one message.")
            message = read_message(text)
        except RpcError as fault:
            return era.refusal(fault)
        if is_handshake_era and not (isinstance(message, RpcMessage) and message.is_stateless):
            return await self._handshake.answer(_with_program(caller, headers), message)
        if isinstance(message, RpcMessage) and (name := client_name(message.params.about.client_info)):
            caller = replace(caller, program=name)
        return await self._stateless.answer(caller, message, headers, repeated, reauthenticate)

    def _cross_origin(self, headers: Headers) -> Sequence[Header]:
        """The headers that allow pages of an allowed origin to read the answer."""
        origin = headers.get(b"origin")
        if origin is None or origin not in self._origins:
            return ()
        return (
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"retry-after, www-authenticate"),
            (b"vary", b"origin"),
            *PREFLIGHT,
        )

    def _challenge(self, problem: problems.Problem) -> str:
        members = {"realm": self._config.name}
        if problem.type is problems.INSUFFICIENT_SCOPE:
            members |= {"error": "insufficient_scope", "scope": str(problem.extra.get("scope", ""))}
        else:
            if problem.type is not problems.MISSING_API_KEY:
                members |= {"error": "invalid_token", "error_description": problem.message.replace('"', "'")}
            members |= {"scope": self._config.scope} if self._config.scope else {}
        if self._config.resource_metadata:
            members["resource_metadata"] = self._config.resource_metadata
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in members.items())


def _with_program(caller: Caller, headers: Headers) -> Caller:
    """A caller of the era of the handshake, with the name of its program, as its session id has it."""
    name = name_in_session_id(headers.get(b"mcp-session-id", b""))
    return replace(caller, program=name) if name else caller


def accepts(headers: Headers, kind: bytes) -> bool:
    """Whether a client accepts a media type. A client without an Accept header accepts any."""
    accept = headers.get(b"accept", b"*/*").lower()
    if b"=0" not in accept:
        return kind in accept or b"*/*" in accept or kind.split(b"/")[0] + b"/*" in accept
    # A type of quality 0 is refused, and the more exact entry counts (RFC 9110, section 12.5.1).
    qualities: dict[bytes, bool] = {}
    for entry in accept.split(b","):
        name, *parameters = (part.strip() for part in entry.split(b";"))
        qualities[name] = not any(_ZERO_QUALITY.fullmatch(parameter) for parameter in parameters)
    ranges = (kind, kind.split(b"/")[0] + b"/*", b"*/*")
    return next((qualities[name] for name in ranges if name in qualities), False)


def _version(headers: Headers) -> str | None:
    version = headers.get(ROUTING[0])
    return None if version is None else version.strip(b" \t").decode("latin-1")


def _repeated_headers(headers: Sequence[Header]) -> Sequence[bytes]:
    names = [name for name, _ in headers]
    return [name for name in ROUTING if names.count(name) > 1]
