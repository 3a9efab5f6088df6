"""Where agents call: who may, in which era they speak, and what HTTP makes of the answer."""

import re
from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

from starlette.types import Receive, Scope, Send

from holdfast.kit.decode import Headers, read_body
from holdfast.kit.keys import Authenticate
from holdfast.kit.limits import Limits
from holdfast.kit.mcp import handshake, stateless
from holdfast.kit.mcp.handshake import Handshake
from holdfast.kit.mcp.jsonrpc import INVALID_REQUEST, Fault, Message, read, read_items, unicode
from holdfast.kit.mcp.methods import Reply
from holdfast.kit.mcp.model import Agents
from holdfast.kit.mcp.resources import Resources
from holdfast.kit.mcp.stateless import Stateless
from holdfast.kit.mcp.streams import Known, Stream
from holdfast.kit.mcp.tools import Tools
from holdfast.kit.operation import Caller, Operations
from holdfast.kit.problems import (
    BAD_REQUEST,
    FORBIDDEN,
    INSUFFICIENT_SCOPE,
    METHOD_NOT_ALLOWED,
    MISSING_API_KEY,
    NOT_ACCEPTABLE,
    ErrorBody,
    Problem,
)
from holdfast.kit.rest import Header, answered, api_key, encode, respond, unexpected
from holdfast.kit.runner import Runner
from holdfast.kit.streams import Streams, event

VERSIONS = (stateless.VERSION, *reversed(handshake.VERSIONS))
ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
"""Headers that decide where a request goes. One sent twice could be read in two ways."""

NAME = "mcp"
"""What logs and figures call the door, where it refuses; tools and methods that are run go by their own names."""

JSON, EVENTS = b"application/json", b"text/event-stream"
PREFLIGHT: Sequence[Header] = (
    (b"access-control-allow-methods", b"GET, POST"),
    (
        b"access-control-allow-headers",
        b"accept, authorization, content-type, last-event-id, x-api-key, " + b", ".join(ROUTING),
    ),
    (b"access-control-max-age", b"600"),
)
_ARRAY = re.compile(r"[ \t\r\n]*\[")


class Endpoint:
    """The endpoint as an ASGI application."""

    def __init__(
        self,
        agents: Agents,
        operations: Operations,
        runner: Runner,
        authenticate: Authenticate,
        limits: Limits,
        streams: Streams,
        error_body: ErrorBody,
    ) -> None:
        self._agents = agents
        self._authenticate = authenticate
        self._streams = streams
        self._error_body = error_body
        tools = Tools(operations, runner, limits, agents.limit)
        resources = Resources(agents, operations, runner)
        self._handshake = Handshake(agents, tools, resources)
        self._stateless = Stateless(agents, tools, resources, VERSIONS)
        address = urlsplit(agents.base_url)
        self._own_origin = f"{address.scheme}://{address.netloc}".encode()
        self._origins = {each.encode() for each in agents.origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = dict(scope["headers"])
        extra = self._cross_origin(headers) if b"origin" in headers else ()
        try:
            reply = await self._answer(scope, headers, receive)
        except Exception as error:
            problem = error if isinstance(error, Problem) else unexpected(error, NAME)
            reply = Reply(problem.status, encode(self._error_body(problem)))
            extra = [*extra, *self._headers_of(problem, headers)]
        if isinstance(reply, Stream):
            await self._streams.serve(
                NAME, receive, send, reply.feed, reply.pending, headers=extra, farewell=reply.farewell
            )
            return
        await respond(send, reply.status, reply.content, [*extra, *reply.headers], reply.kind)
        if reply.status >= 400:
            answered(NAME, reply.status).inc()

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive) -> Reply | Stream:
        """Raises a `Problem` for what is told over HTTP."""
        origin = headers.get(b"origin", self._own_origin)
        if origin != self._own_origin and origin not in self._origins:
            raise FORBIDDEN("Pages of this origin may not call the service.", hint="Call from a program or a server.")
        method = scope["method"]
        if method == "OPTIONS" and origin in self._origins:
            return Reply(204, b"")
        if method != "POST" and method not in self._methods(headers):
            raise METHOD_NOT_ALLOWED(f"/mcp does not answer {method} here.")
        known = partial(self._authenticate, api_key(headers))
        return await (self._get(headers, known) if method == "GET" else self._post(scope, headers, receive, known))

    def _methods(self, headers: Headers) -> Sequence[str]:
        """What the path answers; a stream that is opened with GET belongs to the older era."""
        listens = self._agents.changes and _version(headers) != stateless.VERSION
        return ("GET", "POST") if listens else ("POST",)

    async def _get(self, headers: Headers, known: Known) -> Stream:
        caller = await known()
        version = _version(headers)
        if version is not None and version not in handshake.VERSIONS:
            raise BAD_REQUEST(f"There is no version {version} of the protocol here.", hint=f"Known: {VERSIONS}.")
        if not accepts(headers, EVENTS):
            raise NOT_ACCEPTABLE("GET opens a stream of events.", hint="Send Accept: text/event-stream.")
        assert self._agents.changes
        last = headers.get(b"last-event-id", b"").decode("latin-1")
        return self._handshake.stream(await self._agents.changes(caller), known, version, last)

    async def _post(self, scope: Scope, headers: Headers, receive: Receive, known: Known) -> Reply | Stream:
        caller = await known()
        as_event = not accepts(headers, JSON)
        if as_event and not accepts(headers, EVENTS):
            raise NOT_ACCEPTABLE()
        body = await read_body(headers, receive)
        reply = await self._speak(scope, headers, body, caller, known)
        if isinstance(reply, Stream) and not accepts(headers, EVENTS):
            raise NOT_ACCEPTABLE("A subscription is a stream of events.")
        if isinstance(reply, Reply) and as_event and reply.status == 200:
            return reply._replace(content=event(reply.content), kind=EVENTS)
        return reply

    async def _speak(self, scope: Scope, headers: Headers, body: bytes, caller: Caller, known: Known) -> Reply | Stream:
        """The answer to a body, in the era it is written in."""
        version = _version(headers)
        repeated = _repeated(scope["headers"]) if len(headers) < len(scope["headers"]) else ()
        older = (version is None or version in handshake.VERSIONS) and ROUTING[0] not in repeated
        era = self._handshake if older else self._stateless
        try:
            text = unicode(body)
            if _ARRAY.match(text):
                items = read_items(text)
                if older and version in handshake.WITH_BATCHES:
                    return await self._handshake.answer_batch(caller, items)
                raise Fault(INVALID_REQUEST, "This version of the protocol knows no batches: send one message.")
            message = read(text)
        except Fault as fault:
            return era.refusal(fault)
        if older and not (isinstance(message, Message) and message.is_stateless):
            return await self._handshake.answer(caller, message)
        return await self._stateless.answer(caller, message, headers, repeated, known)

    def _cross_origin(self, headers: Headers) -> Sequence[Header]:
        """What lets the pages of a befriended origin read the answer."""
        origin = headers[b"origin"]
        if origin not in self._origins:
            return ()
        return (
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"retry-after, www-authenticate"),
            (b"vary", b"origin"),
            *PREFLIGHT,
        )

    def _headers_of(self, problem: Problem, headers: Headers) -> Sequence[Header]:
        """What HTTP wants beside the envelope."""
        extra: list[Header] = []
        if problem.retry_after is not None:
            extra.append((b"retry-after", str(problem.retry_after).encode()))
        if problem.status == 405:
            extra.append((b"allow", ", ".join(self._methods(headers)).encode()))
        if problem.status == 401 or problem.kind is INSUFFICIENT_SCOPE:
            extra.append((b"www-authenticate", self._challenge(problem).encode("ascii", "ignore")))
        return extra

    def _challenge(self, problem: Problem) -> str:
        members = {"realm": self._agents.name}
        if problem.kind is INSUFFICIENT_SCOPE:
            members |= {"error": "insufficient_scope", "scope": str(problem.extra.get("scope", ""))}
        else:
            if problem.kind is not MISSING_API_KEY:
                members |= {"error": "invalid_token", "error_description": problem.message.replace('"', "'")}
            members |= {"scope": self._agents.scope} if self._agents.scope else {}
        if self._agents.resource_metadata:
            members["resource_metadata"] = self._agents.resource_metadata
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in members.items())


def accepts(headers: Headers, kind: bytes) -> bool:
    """Whether a client takes answers of a kind; one that does not say takes any."""
    accept = headers.get(b"accept", b"*/*")
    if kind in accept:
        return True
    accept = accept.lower()
    return kind in accept or b"*/*" in accept or kind.split(b"/")[0] + b"/*" in accept


def _version(headers: Headers) -> str | None:
    version = headers.get(ROUTING[0])
    return None if version is None else version.strip(b" \t").decode("latin-1")


def _repeated(headers: Sequence[Header]) -> Sequence[bytes]:
    names = [name for name, _ in headers]
    return [name for name in ROUTING if names.count(name) > 1]
