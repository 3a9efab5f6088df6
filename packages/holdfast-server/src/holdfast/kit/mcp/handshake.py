"""The protocol up to 2025-11-25: a client sends `initialize` first, and then its requests.

No state is kept between requests, so any process can answer any request. The answer to `initialize` still has a session
id, because clients open the stream of changes only if they have one. It carries the name that the program of the agent
gives itself, such as `claude-ai`, which is not checked; clients repeat it. Since 2026-07-28 each request may have
the name in `_meta`.
"""

import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.http.event_streams import Feed, encode_event, retry_ms
from holdfast.kit.http.handler import Header, Reply
from holdfast.kit.mcp import jsonrpc as rpc
from holdfast.kit.mcp.model import Change, EndpointConfig
from holdfast.kit.mcp.resources import NoSuchResource, ResourceMethods
from holdfast.kit.mcp.stateless import ChangeStream, Reauthenticate, encode_notifications
from holdfast.kit.mcp.tools import Tools
from holdfast.kit.operations.rate_limits import Limits

MAX_CHARACTERS = 64
"""The most characters of a name that are kept."""


class _ClientInfo(Struct):
    name: str


def client_name(info: Raw | UnsetType) -> str:
    """The name in a client's `clientInfo`; empty if it states none. Nothing is refused for its name."""
    if isinstance(info, UnsetType):
        return ""
    try:
        return _plain(msgspec.json.decode(info, type=_ClientInfo).name)
    except MsgspecError:
        return ""


def new_session_id(name: str) -> bytes:
    """A random session id with the name of a client."""
    encoded = urlsafe_b64encode(name.encode()).rstrip(b"=")
    return secrets.token_urlsafe(16).encode() + (b"." + encoded if encoded else b"")


def name_in_session_id(session_id: bytes) -> str:
    """The name in a session id, which may be made up; empty if there is none."""
    encoded = session_id.partition(b".")[2][: 8 * MAX_CHARACTERS]
    return _decoded(encoded) if encoded else ""


@lru_cache(1000)
def _decoded(encoded: bytes) -> str:
    """The name in a part of a session id. A client repeats it with each request."""
    try:
        return _plain(urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)).decode())
    except ValueError:
        return ""


def _plain(name: str) -> str:
    """A name without line breaks and invisible characters, and not too long."""
    words = "".join(letter if letter.isprintable() else " " for letter in name[: 8 * MAX_CHARACTERS]).split()
    return " ".join(words)[:MAX_CHARACTERS].strip()


VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
WITH_BATCHES = (None, *VERSIONS[:2])
"""The revisions with batches. A request that names no revision belongs to 2025-03-26, the first with this transport."""

MAX_BATCH = 100

MAX_BATCH_ANSWER_BYTES = 4_000_000
"""The maximum size of the answers to a batch. After it, the remaining messages are refused and not run."""

RESOURCE_NOT_FOUND = -32002
STATUSES = {rpc.PARSE_ERROR: 400, rpc.INVALID_REQUEST: 400}

_POSITION = re.compile("[0-9]{1,18}")


class InitializeResult(rpc.Result, kw_only=True, rename="camel"):
    protocol_version: str
    capabilities: Mapping[str, object]
    server_info: Mapping[str, str]
    instructions: str


class Handshake:
    """Answers the messages of this era."""

    def __init__(self, config: EndpointConfig, tools: Tools, resources: ResourceMethods, limits: Limits) -> None:
        self._config = config
        self._limits = limits
        self._resources = resources
        self._methods: dict[str, rpc.Method] = {
            "initialize": self.initialize,
            "ping": self.ping,
            **tools.methods,
            **resources.methods,
        }
        if config.has_resources and config.changes:
            self._methods |= dict.fromkeys(("resources/subscribe", "resources/unsubscribe"), resources.subscribe)

    async def initialize(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        """Answer with the service's identity and the requested version, or else the newest version of this era."""
        requested = rpc.required_param(params.protocol_version, "protocolVersion")
        result = InitializeResult(
            protocol_version=requested if requested in VERSIONS else VERSIONS[-1],
            capabilities=self._config.capabilities,
            server_info=self._config.identity,
            instructions=self._config.instructions,
        )
        return rpc.completed_request("initialize", result)

    async def ping(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        return rpc.completed_request("ping", rpc.Result())

    async def answer(self, caller: Caller, message: rpc.RpcMessage | rpc.ClientResponse) -> Reply:
        """The answer to one message. Raises a `Problem` that is answered with its HTTP status."""
        if isinstance(message, rpc.ClientResponse) or not message.wants_answer:
            return Reply(202)
        try:
            work = await self._method(message)(caller, message.params)
            content = _success_response(message, await rpc.perform(work))
            return Reply(200, content, headers=self._session(message) if message.method == "initialize" else ())
        except rpc.RpcError as fault:
            return self.refusal(fault, message)

    def _session(self, message: rpc.RpcMessage) -> Sequence[Header]:
        """A random session id with the name of the client. Clients repeat it; the service reads only the name."""
        if not self._config.changes:
            return ()
        return [(b"mcp-session-id", new_session_id(client_name(message.params.client_info)))]

    def _method(self, message: rpc.RpcMessage) -> rpc.Method:
        method = self._methods.get(message.method)
        if method is None:
            raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"There is no method {message.method} here.")
        return method

    def refusal(self, fault: rpc.RpcError, message: rpc.RpcMessage | None = None) -> Reply:
        """The answer to a refused message."""
        return Reply(STATUSES.get(fault.code, 200), self._error_bytes(fault, message))

    def _error_bytes(self, fault: rpc.RpcError, message: rpc.RpcMessage | rpc.ClientResponse | None) -> bytes:
        if isinstance(fault, NoSuchResource):
            fault = rpc.RpcError(RESOURCE_NOT_FOUND, fault.message, fault.data)
        return rpc.error_response(fault, message)

    async def answer_batch(self, caller: Caller, items: Sequence[Raw]) -> Reply:
        """The answers to a batch of messages, which are run in their order.

        All are admitted before the first one is run: if the batch is refused, nothing has changed. Raises `RpcError`,
        or a `Problem` that is answered with its HTTP status.
        """
        if not 1 <= len(items) <= MAX_BATCH:
            raise rpc.RpcError(
                rpc.INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages; this one has {len(items)}."
            )
        if self._config.limit:
            # The request itself was counted as one message.
            await self._limits.admit(self._config.limit, caller, len(items) - 1)
        seen_ids: set[bytes] = set()
        admitted: list[tuple[rpc.RpcMessage, rpc.AdmittedRequest] | bytes] = []
        for item in items:
            message = None
            try:
                message = rpc.read_message(item)
                if isinstance(message, rpc.RpcMessage) and message.wants_answer:
                    self._check_alone(message, seen_ids)
                    work = await self._method(message)(caller, message.params)
                    admitted.append((message, work))
            except rpc.RpcError as fault:
                admitted.append(self._error_bytes(fault, message))
        answers: list[bytes] = []
        room = MAX_BATCH_ANSWER_BYTES
        for entry in admitted:
            if isinstance(entry, bytes):
                answers.append(entry)
            elif room > 0:
                answers.append(await self._answer_late(*entry))
            else:
                answers.append(self._error_bytes(rpc.as_rpc_error(_batch_too_long(), rpc.INTERNAL_ERROR), entry[0]))
            room -= len(answers[-1])
        return Reply(200, b"[" + b",".join(answers) + b"]") if answers else Reply(202)

    def _check_alone(self, message: rpc.RpcMessage, seen_ids: set[bytes]) -> None:
        """Raise `RpcError` if a message may not be in a batch, or has one of `seen_ids`."""
        if not isinstance(message.id, UnsetType):
            if bytes(message.id) in seen_ids:
                raise rpc.RpcError(rpc.INVALID_REQUEST, "Another message of the batch has the same id.")
            seen_ids.add(bytes(message.id))
        if message.method == "initialize":
            raise rpc.RpcError(rpc.INVALID_REQUEST, "initialize stands alone, not in a batch.")
        if message.is_stateless:
            raise rpc.RpcError(rpc.INVALID_REQUEST, "2026-07-28 has no batches.")

    async def _answer_late(self, message: rpc.RpcMessage, work: rpc.AdmittedRequest) -> bytes:
        try:
            return _success_response(message, await rpc.perform(work))
        except rpc.RpcError as fault:
            return self._error_bytes(fault, message)
        except Problem as problem:
            # Other messages of the batch have already run, so the whole batch can no longer be refused.
            return self._error_bytes(rpc.as_rpc_error(problem, rpc.INTERNAL_ERROR), message)

    def stream(
        self, feed: Feed[Change], reauthenticate: Reauthenticate, version: str | None, last: str
    ) -> ChangeStream:
        """The stream that GET opens: every change that the caller may read about, after the event `last`.

        An impossible event id is treated as the first one: everything may have changed since.
        """

        def render(caller: Caller, changes: Sequence[Change] | None, position: int) -> bytes:
            uris = self._resources.readable(caller, changes or ())
            listed = self._resources.lists(caller) and (changes is None or any(change.listed for change in changes))
            notifications = encode_notifications(uris, listed)
            # Only the last event has the position as its id: a client that misses it gets all of them again.
            return b"".join(map(encode_event, notifications[:-1])) + b"".join(
                encode_event(notice, id=str(feed.last_known_position(position))) for notice in notifications[-1:]
            )

        since = feed.position
        if last:
            seen = int(last) if _POSITION.fullmatch(last) else 0
            since = seen if seen <= feed.position else 0
        # A client older than 2025-11-25 would report an event without content as a broken message.
        empty = b"data: \n" if version == VERSIONS[-1] else b""
        return ChangeStream(
            feed,
            reauthenticate,
            render,
            first=b"id: %d\nretry: %d\n%s\n" % (feed.last_known_position(since), retry_ms(), empty),
            since=since,
            missed=self._config.missed,
        )


def _success_response(message: rpc.RpcMessage, result: rpc.Result) -> bytes:
    """The answer with a result, without the members of the later era."""
    if isinstance(result, rpc.CacheableResult):
        result.ttl_ms = UNSET
    return rpc.encode(rpc.SuccessResponse(message.answered_id, result))


def _batch_too_long() -> Problem:
    return SERVICE_UNAVAILABLE(
        "The answers to the messages before this one are too long, so this one was not run.",
        hint="Send it again, in another batch.",
    )
