"""The protocol up to 2025-11-25: a client introduces itself first, and then asks.

Nothing of the introduction is remembered, so any process answers any request. It names a session all the same, because
clients open a stream for what they are told of changes only where there is one.
"""

import re
import secrets
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Raw, UnsetType

from holdfast.kit.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Answer,
    Fault,
    Id,
    Message,
    Params,
    Response,
    encode,
    read,
    refused,
)
from holdfast.kit.mcp.methods import (
    ACCEPTED,
    Cacheable,
    Method,
    Reply,
    Result,
    Work,
    as_fault,
    done,
    perform,
    required,
)
from holdfast.kit.mcp.model import Agents, Change
from holdfast.kit.mcp.resources import NoSuchResource, Resources
from holdfast.kit.mcp.streams import Known, Stream, notices
from holdfast.kit.mcp.tools import Tools
from holdfast.kit.operation import Caller
from holdfast.kit.problems import Problem
from holdfast.kit.rest import Header
from holdfast.kit.streams import Feed, event

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
WITH_BATCHES = (None, *VERSIONS[:2])
"""The revisions that know batches. A request that names none is of 2025-03-26, the first that knew this transport."""

MAX_BATCH = 100
RESOURCE_NOT_FOUND = -32002
STATUSES = {PARSE_ERROR: 400, INVALID_REQUEST: 400}

_POSITION = re.compile("[0-9]{1,18}")

RETRY = 3_000
"""Milliseconds a client waits before it opens a broken stream again."""


class Introduction(Result, kw_only=True, rename="camel"):
    protocol_version: str
    capabilities: Mapping[str, object]
    server_info: Mapping[str, str]
    instructions: str


class Handshake:
    """Answers the messages of this era."""

    def __init__(self, agents: Agents, tools: Tools, resources: Resources) -> None:
        self._agents = agents
        self._resources = resources
        self._methods: dict[str, Method] = {
            "initialize": self.initialize,
            "ping": self.ping,
            **tools.methods,
            **resources.methods,
        }
        if agents.has_resources and agents.changes:
            self._methods |= dict.fromkeys(("resources/subscribe", "resources/unsubscribe"), resources.subscribe)

    async def initialize(self, caller: Caller, params: Params) -> Work:
        """The service introduces itself, in the version asked for or else the newest of this era."""
        asked = required(params.protocol_version, "protocolVersion")
        introduction = Introduction(
            protocol_version=asked if asked in VERSIONS else VERSIONS[-1],
            capabilities=self._agents.capabilities,
            server_info=self._agents.identity,
            instructions=self._agents.instructions,
        )
        return done("initialize", introduction)

    async def ping(self, caller: Caller, params: Params) -> Work:
        return done("ping", Result())

    async def answer(self, caller: Caller, message: Message | Response) -> Reply:
        """The answer to one message. Raises a `Problem` that is told over HTTP."""
        if isinstance(message, Response) or not message.wants_answer:
            return ACCEPTED
        try:
            work = await self._admit(caller, message)
            content = encode(Answer(message.id, await self._finish(work)))
            return Reply(200, content, headers=self._session() if message.method == "initialize" else ())
        except Fault as fault:
            return self.refusal(fault, message)

    def _session(self) -> Sequence[Header]:
        """A name that no other session has, for clients to repeat and for nobody to look at."""
        return [(b"mcp-session-id", secrets.token_urlsafe(16).encode())] if self._agents.changes else ()

    async def _admit(self, caller: Caller, message: Message) -> Work:
        method = self._methods.get(message.method)
        if method is None:
            raise Fault(METHOD_NOT_FOUND, f"There is no method {message.method} here.")
        return await method(caller, message.params)

    async def _finish(self, work: Work) -> Result:
        result = await perform(work)
        if isinstance(result, Cacheable):
            result.ttl_ms = UNSET
        return result

    def refusal(self, fault: Fault, message: Message | None = None) -> Reply:
        """What is answered to a message that was refused."""
        return Reply(STATUSES.get(fault.code, 200), self._refused(fault, message))

    def _refused(self, fault: Fault, message: Message | Response | None) -> bytes:
        if isinstance(fault, NoSuchResource):
            fault = Fault(RESOURCE_NOT_FOUND, fault.message, fault.data)
        return refused(fault, message)

    async def answer_batch(self, caller: Caller, items: Sequence[Raw]) -> Reply:
        """The answers to many messages, run in their order.

        All are admitted before the first is run: a refusal of the whole means that nothing was changed. Raises
        `Fault`, or a `Problem` that is told over HTTP.
        """
        if not 1 <= len(items) <= MAX_BATCH:
            raise Fault(INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages; this one has {len(items)}.")
        seen: set[Id | UnsetType] = set()
        admitted: list[tuple[Message, Work] | bytes] = []
        for item in items:
            message = None
            try:
                message = read(item)
                if isinstance(message, Message) and message.wants_answer:
                    self._check_alone(message, seen)
                    admitted.append((message, await self._admit(caller, message)))
            except Fault as fault:
                admitted.append(self._refused(fault, message))
        answers = [each if isinstance(each, bytes) else await self._answer_late(*each) for each in admitted]
        return Reply(200, b"[" + b",".join(answers) + b"]") if answers else ACCEPTED

    def _check_alone(self, message: Message, seen: set[Id | UnsetType]) -> None:
        """Whether a message may stand in a batch, beside those whose ids were seen before it."""
        if message.id in seen:
            raise Fault(INVALID_REQUEST, "Another message of the batch has the same id.")
        seen.add(message.id)
        if message.method == "initialize":
            raise Fault(INVALID_REQUEST, "initialize stands alone, not in a batch.")
        if message.is_stateless:
            raise Fault(INVALID_REQUEST, "2026-07-28 has no batches.")

    async def _answer_late(self, message: Message, work: Work) -> bytes:
        try:
            return encode(Answer(message.id, await self._finish(work)))
        except Fault as fault:
            return self._refused(fault, message)
        except Problem as problem:
            # Others of the batch have been run: this is no longer told of the whole.
            return self._refused(as_fault(problem, INTERNAL_ERROR), message)

    def stream(self, feed: Feed[Change], known: Known, version: str | None, last: str) -> Stream:
        """What GET opens: every change that the caller may hear of, resumed after the event a client saw last."""

        def tell(caller: Caller, changes: Sequence[Change] | None) -> bytes:
            uris = self._resources.heard(caller, changes or ())
            listed = self._resources.lists(caller) and (changes is None or any(each.listed for each in changes))
            told = notices(uris, listed)
            # The position stands at the last of them: whoever is cut off before it hears them all again.
            return b"".join(map(event, told[:-1])) + b"".join(event(each, id=str(feed.position)) for each in told[-1:])

        since = int(last) if _POSITION.fullmatch(last) else feed.position
        if feed.since(since) is None:
            since = feed.position
        # A client older than 2025-11-25 would take an event without content for a broken message.
        empty = b"data: \n" if version == VERSIONS[-1] else b""
        return Stream(feed, known, tell, first=b"id: %d\nretry: %d\n%s\n" % (since, RETRY, empty), since=since)
