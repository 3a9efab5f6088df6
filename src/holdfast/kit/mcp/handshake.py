"""The protocol up to 2025-11-25: a client sends `initialize` first, and then its requests.

No state is kept between requests, so any process can answer any request. The answer to `initialize` has a session id
nevertheless, because clients open the stream of changes only if there is one.
"""

import re
import secrets
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Raw, UnsetType

from holdfast.kit.caller import Caller
from holdfast.kit.handler import Header, Reply
from holdfast.kit.limits import Limits
from holdfast.kit.mcp import jsonrpc as rpc
from holdfast.kit.mcp.model import Agents, Change
from holdfast.kit.mcp.resources import NoSuchResource, Resources
from holdfast.kit.mcp.streams import Authenticated, Stream, notices
from holdfast.kit.mcp.tools import Tools
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.streams import Feed, event

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
WITH_BATCHES = (None, *VERSIONS[:2])
"""The revisions with batches. A request that names no revision is of 2025-03-26, the first with this transport."""

MAX_BATCH = 100

BATCH_BYTES = 4_000_000
"""When the answers to a batch have so many bytes, the messages that are left are refused, and not run."""

RESOURCE_NOT_FOUND = -32002
STATUSES = {rpc.PARSE_ERROR: 400, rpc.INVALID_REQUEST: 400}

_POSITION = re.compile("[0-9]{1,18}")

RETRY = 3_000
"""Milliseconds a client waits before it opens a broken stream again."""


class InitializeResult(rpc.Result, kw_only=True, rename="camel"):
    protocol_version: str
    capabilities: Mapping[str, object]
    server_info: Mapping[str, str]
    instructions: str


class Handshake:
    """Answers the messages of this era."""

    def __init__(self, agents: Agents, tools: Tools, resources: Resources, limits: Limits) -> None:
        self._agents = agents
        self._limits = limits
        self._resources = resources
        self._methods: dict[str, rpc.Method] = {
            "initialize": self.initialize,
            "ping": self.ping,
            **tools.methods,
            **resources.methods,
        }
        if agents.has_resources and agents.changes:
            self._methods |= dict.fromkeys(("resources/subscribe", "resources/unsubscribe"), resources.subscribe)

    async def initialize(self, caller: Caller, params: rpc.Params) -> rpc.Work:
        """Answer with the service's identity, in the requested version or else in the newest of this era."""
        asked = rpc.required(params.protocol_version, "protocolVersion")
        result = InitializeResult(
            protocol_version=asked if asked in VERSIONS else VERSIONS[-1],
            capabilities=self._agents.capabilities,
            server_info=self._agents.identity,
            instructions=self._agents.instructions,
        )
        return rpc.done("initialize", result)

    async def ping(self, caller: Caller, params: rpc.Params) -> rpc.Work:
        return rpc.done("ping", rpc.Result())

    async def answer(self, caller: Caller, message: rpc.Message | rpc.Response) -> Reply:
        """The answer to one message. Raises a `Problem` that is answered with its HTTP status."""
        if isinstance(message, rpc.Response) or not message.wants_answer:
            return Reply(202)
        try:
            work = await self._method(message)(caller, message.params)
            content = _success(message, await rpc.perform(work))
            return Reply(200, content, headers=self._session() if message.method == "initialize" else ())
        except rpc.Fault as fault:
            return self.refusal(fault, message)

    def _session(self) -> Sequence[Header]:
        """A random session id. Clients repeat it; the service ignores it."""
        return [(b"mcp-session-id", secrets.token_urlsafe(16).encode())] if self._agents.changes else ()

    def _method(self, message: rpc.Message) -> rpc.Method:
        method = self._methods.get(message.method)
        if method is None:
            raise rpc.Fault(rpc.METHOD_NOT_FOUND, f"There is no method {message.method} here.")
        return method

    def refusal(self, fault: rpc.Fault, message: rpc.Message | None = None) -> Reply:
        """The answer to a message that was refused."""
        return Reply(STATUSES.get(fault.code, 200), self._refused(fault, message))

    def _refused(self, fault: rpc.Fault, message: rpc.Message | rpc.Response | None) -> bytes:
        if isinstance(fault, NoSuchResource):
            fault = rpc.Fault(RESOURCE_NOT_FOUND, fault.message, fault.data)
        return rpc.refused(fault, message)

    async def answer_batch(self, caller: Caller, items: Sequence[Raw]) -> Reply:
        """The answers to a batch of messages, which are run in their order.

        All are admitted before the first is run: if the whole batch is refused, nothing was changed. Raises `Fault`,
        or a `Problem` that is answered with its HTTP status.
        """
        if not 1 <= len(items) <= MAX_BATCH:
            raise rpc.Fault(rpc.INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages; this one has {len(items)}.")
        if self._agents.limit:
            # The request itself was counted as one message.
            await self._limits.admit(self._agents.limit, caller, len(items) - 1)
        seen: set[rpc.Id | UnsetType] = set()
        admitted: list[tuple[rpc.Message, rpc.Work] | bytes] = []
        for item in items:
            message = None
            try:
                message = rpc.read(item)
                if isinstance(message, rpc.Message) and message.wants_answer:
                    self._check_alone(message, seen)
                    work = await self._method(message)(caller, message.params)
                    admitted.append((message, work))
            except rpc.Fault as fault:
                admitted.append(self._refused(fault, message))
        answers: list[bytes] = []
        room = BATCH_BYTES
        for each in admitted:
            if isinstance(each, bytes):
                answers.append(each)
            elif room > 0:
                answers.append(await self._answer_late(*each))
            else:
                answers.append(self._refused(rpc.as_fault(_full(), rpc.INTERNAL_ERROR), each[0]))
            room -= len(answers[-1])
        return Reply(200, b"[" + b",".join(answers) + b"]") if answers else Reply(202)

    def _check_alone(self, message: rpc.Message, seen: set[rpc.Id | UnsetType]) -> None:
        """Raises `Fault` if a message may not be in a batch, or has one of the ids `seen` before."""
        if message.id in seen:
            raise rpc.Fault(rpc.INVALID_REQUEST, "Another message of the batch has the same id.")
        seen.add(message.id)
        if message.method == "initialize":
            raise rpc.Fault(rpc.INVALID_REQUEST, "initialize stands alone, not in a batch.")
        if message.is_stateless:
            raise rpc.Fault(rpc.INVALID_REQUEST, "2026-07-28 has no batches.")

    async def _answer_late(self, message: rpc.Message, work: rpc.Work) -> bytes:
        try:
            return _success(message, await rpc.perform(work))
        except rpc.Fault as fault:
            return self._refused(fault, message)
        except Problem as problem:
            # Other messages of the batch have been run, so the batch as a whole cannot be refused any more.
            return self._refused(rpc.as_fault(problem, rpc.INTERNAL_ERROR), message)

    def stream(self, feed: Feed[Change], authenticated: Authenticated, version: str | None, last: str) -> Stream:
        """The stream that GET opens: every change that the caller may read about, after the event `last`.

        An event that nobody can have seen stands for the very first one: everything may have changed since.
        """

        def render(caller: Caller, changes: Sequence[Change] | None, position: int) -> bytes:
            uris = self._resources.readable(caller, changes or ())
            listed = self._resources.lists(caller) and (changes is None or any(each.listed for each in changes))
            sent = notices(uris, listed)
            # Only the last event has the position as its id: a client that is cut off before it gets all of them again.
            return b"".join(map(event, sent[:-1])) + b"".join(
                event(each, id=str(feed.known(position))) for each in sent[-1:]
            )

        since = feed.position
        if last:
            seen = int(last) if _POSITION.fullmatch(last) else 0
            since = seen if seen <= feed.position else 0
        # A client older than 2025-11-25 would report an event without content as a broken message.
        empty = b"data: \n" if version == VERSIONS[-1] else b""
        return Stream(
            feed,
            authenticated,
            render,
            first=b"id: %d\nretry: %d\n%s\n" % (feed.known(since), RETRY, empty),
            since=since,
            missed=self._agents.missed,
        )


def _success(message: rpc.Message, result: rpc.Result) -> bytes:
    """The answer with a result, without what only the later era has."""
    if isinstance(result, rpc.Cacheable):
        result.ttl_ms = UNSET
    return rpc.encode(rpc.Success(message.id, result))


def _full() -> Problem:
    return SERVICE_UNAVAILABLE(
        "The answers to the messages before this one are too long, so this one was not run.",
        hint="Send it again, in another batch.",
    )
