"""One line of a service's table: a route, a tool, or both, and the function that they run, in its mode.

REST, MCP and every document are derived from the table; see decision 1. A mode says how a function is run: for one
call, for a batch of calls, or in steps; read-only or not. The type checker checks that a function fits its mode; its
annotations are the command and the answer.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from holdfast.kit.contract import problems
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import Problem, ProblemType
from holdfast.kit.operations.admission import Priority
from holdfast.kit.operations.steps import Conclusion, Steps
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.group_commit import LockedRow
from holdfast.kit.postgres.pagination import OffsetPage, Page, with_short_pages

A = TypeVar("A")

C = TypeVar("C", bound=Command)

R = TypeVar("R")


class Call(Struct, Generic[C], frozen=True):
    """One of the calls that share a statement."""

    caller: Caller
    command: C


class Batch(Struct, Generic[C], frozen=True):
    """The calls that share a statement, in order of arrival.

    tenant_id  the tenant of all calls, in a service with row-level security; else 0: they may have several tenants
    waits      whether the statement waits for rows that other transactions have locked. If not, each call that needs
               such a row is answered with `LockedRow`
    """

    tenant_id: int
    calls: Sequence[Call[C]]
    waits: bool = True


class LinkedAnswer(Struct, Generic[A], frozen=True):
    """An answer of an operation that reads, with what is sent beside it over HTTP.

    body    the answer itself
    link    the value of the header Link; empty: it has none
    """

    body: A
    link: str


@dataclass(frozen=True)
class RunMode(Generic[C, A]):
    """The function of an operation, with the types of its command and its answer.

    reads    whether it changes nothing, and so needs no transaction
    """

    function: Callable[..., Awaitable[Any]]
    reads: bool = False

    @cached_property
    def _types(self) -> tuple[Any, Any]:
        """The annotations of the last parameter and of the answer."""
        hints = get_type_hints(self.function, include_extras=True)
        return hints[[*inspect.signature(self.function).parameters][-1]], hints["return"]

    @cached_property
    def command(self) -> type[C]:
        return self._types[0]

    @cached_property
    def _annotated_answer(self) -> Any:
        """The annotation of one answer."""
        return self._types[1]

    @cached_property
    def has_link(self) -> bool:
        """Whether its answers are `LinkedAnswer`."""
        return get_origin(self._annotated_answer) is LinkedAnswer

    @cached_property
    def answer(self) -> Any:
        """The type of the body of one answer; None for an empty one."""
        if self.has_link:
            return get_args(self._annotated_answer)[0]
        return None if self._annotated_answer is type(None) else self._annotated_answer

    @property
    def refuses(self) -> tuple[ProblemType, ...]:
        """The problems that the function declares."""
        return getattr(self.function, "__refuses__", ())


class Single(RunMode[C, A]):
    """`(tx, caller, command) -> answer`; with a reader in place of `tx` if it changes nothing."""


class Completion(Protocol):
    """Completes the answers of a batch after its commit. Some of these are problems and `LockedRow`.

    have_keys    whether the calls have idempotency keys. Then the answers were stored incomplete, and stored ones come
                 as `msgspec.Raw`. Each must become the same every time, whatever the others are
    """

    def __call__(
        self, database: Database[Any], answers: Sequence[Any], *, have_keys: bool
    ) -> Awaitable[Sequence[Any]]: ...


@dataclass(frozen=True)
class Batched(RunMode[C, A]):
    """`(tx, batch) -> answers`, one for each call; a `Problem` among them refuses only its own call.

    A call that is answered with `LockedRow` is run again in a batch that waits.

    complete         adds to the answers, after the commit, what the statement did not return; None: nothing is missing
    collect_seconds  seconds that a call may wait for others, if calls come one by one in short succession
    """

    complete: Completion | None = None
    collect_seconds: float = 0.0

    @cached_property
    def command(self) -> type[C]:
        return get_args(self._types[0])[0]

    @cached_property
    def _annotated_answer(self) -> Any:
        (answers,) = get_args(self._types[1])
        members = get_args(answers) if get_origin(answers) in (Union, UnionType) else (answers,)
        return next(member for member in members if member not in (Problem, LockedRow))


class Stepwise(RunMode[C, A]):
    """`(steps, caller, command) -> conclusion`"""

    @cached_property
    def _annotated_answer(self) -> Any:
        return get_args(self._types[1])[0]


AnyMode = Single[Any, Any] | Batched[Any, Any] | Stepwise[Any, Any]


def read(function: Callable[[Reader[R], Caller, C], Awaitable[A]]) -> Single[C, A]:
    """Run without a transaction, for a function that changes nothing."""
    return Single(function, reads=True)


def single(function: Callable[[Tx[R], Caller, C], Awaitable[A]]) -> Single[C, A]:
    """Run in a separate transaction."""
    return Single(function)


def read_batched(function: Callable[[Reader[R], Batch[C]], Awaitable[Sequence[A | Problem]]]) -> Batched[C, A]:
    """Run once for all waiting calls, without a transaction, for a function that changes nothing."""
    return Batched(function, reads=True)


def batched(
    function: Callable[[Tx[R], Batch[C]], Awaitable[Sequence[A | Problem | LockedRow]]],
    complete: Completion | None = None,
    *,
    collect_seconds: float = 0.0,
) -> Batched[C, A]:
    """Run once for all waiting calls, in one transaction. After it, `complete` completes the answers."""
    return Batched(function, complete=complete, collect_seconds=collect_seconds)


def steps(function: Callable[[Steps[R], Caller, C], Awaitable[Conclusion[A]]]) -> Stepwise[C, A]:
    """Run in steps: the function opens its own transactions, and works outside the database between them."""
    return Stepwise(function)


@dataclass(frozen=True)
class Hints:
    """The effects of a tool, for agents and their supervisors (the annotations of MCP)."""

    read_only: bool
    destructive: bool
    idempotent: bool
    reaches_outside: bool = False


READS = Hints(read_only=True, destructive=False, idempotent=True)
"""A tool that changes nothing, such as `list_events`."""

ADDS = Hints(read_only=False, destructive=False, idempotent=False)
"""A tool that adds something, and adds it again if it is called again, such as `create_event` or `record_sale`."""

FETCHES = Hints(read_only=False, destructive=False, idempotent=False, reaches_outside=True)
"""As `ADDS`, and the tool calls a service of others, such as `add_event_photo`."""

SETS = Hints(read_only=False, destructive=False, idempotent=True)
"""A tool that can easily be undone, and whose second call changes nothing more, such as `pause_pool`."""

OVERWRITES = Hints(read_only=False, destructive=True, idempotent=True)
"""A tool by which something may be lost, and whose second call changes nothing more, such as `cancel_event`.

In events, each tool with PATCH or DELETE has it.
"""

RECONCILES = Hints(read_only=False, destructive=True, idempotent=True, reaches_outside=True)
"""As `OVERWRITES`, and the tool calls a service of others, such as `reconcile`."""

REWRITES = Hints(read_only=False, destructive=True, idempotent=False)
"""A tool by which something may be lost, and whose second call has its effect again, such as `import_csv`."""


@dataclass(frozen=True)
class CommandLimit(Generic[C]):
    """A rate limit that counts calls by the content of their command, with a share for each address.

    name    the name of the limit, which is a shared one
    key     returns the key that is counted, from a command
    """

    name: str
    key: Callable[[C], str]


SIGN_IN_LANE = "signing in"
"""The lane of signing in, registering an organizer and stopping mails."""


@dataclass(frozen=True)
class Operation:
    """A line of the table.

    name             `verb_noun`: the operation id of OpenAPI, and the name of the tool
    route            method and path; `{names}` are fields of the command. None: it has no route
    mode             the function, in its mode; its docstring is the description, its annotations are the schemas
    tool             the effects of the tool; None: it is not a tool
    scope            the scope that a caller must have
    body_member      the member that wraps the command's fields in a JSON body
    status           the HTTP status of success; an operation that answers None has no body
    bare             the answer is the whole body instead of the member `data`
    public           needs no credential
    limit            the name of the rate limit that it counts against
    content_limit    the rate limit that counts calls of its route by the content of the command
    follows_up       whether it asks about something that was accepted: under overload it is refused last
    live             the members of its answer that change by themselves: their old values may be sent back
    lane             the lane that it waits in, which has slots apart from other lanes; empty: the usual one
    group            the noun by which documents group it; empty: the folder of its function
    """

    name: str
    route: str | None
    mode: AnyMode
    tool: Hints | None = None
    scope: str | None = None
    body_member: str | None = None
    status: int = 200
    bare: bool = False
    public: bool = False
    limit: str | None = None
    content_limit: CommandLimit[Any] | None = None
    follows_up: bool = False
    live: tuple[str, ...] = ()
    lane: str = ""
    group: str = ""

    @cached_property
    def priority(self) -> Priority:
        return Priority.FOLLOW_UP if self.follows_up else Priority.READ if self.mode.reads else Priority.CHANGE

    @cached_property
    def method(self) -> str:
        return self.route.split()[0] if self.route else ""

    @cached_property
    def path(self) -> str:
        return self.route.split()[1] if self.route else ""

    @cached_property
    def has_body_fields(self) -> bool:
        """Whether the body of its requests has fields: some field of the command is not in the path."""
        return self.method in {"POST", "PATCH", "PUT"} and set(self.command.__struct_fields__) > {*self.path_fields}

    @cached_property
    def method_has_body(self) -> bool:
        """Whether its method allows a body. Without fields in it, a body must be empty, or an empty object."""
        return self.method in {"POST", "PATCH", "PUT"}

    @cached_property
    def takes_idempotency_key(self) -> bool:
        """Whether it takes an Idempotency-Key: it creates something, and its caller is authenticated."""
        return self.method == "POST" and self.status in {201, 202} and not self.public

    @cached_property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def command(self) -> type[Command]:
        return self.mode.command

    @cached_property
    def tool_command(self) -> type[Command]:
        """The command of its tool: lists have shorter pages."""
        return with_short_pages(self.command) if issubclass(self.command, OffsetPage) else self.command

    @cached_property
    def answer(self) -> Any:
        """The type of one answer; None for an empty one."""
        return self.mode.answer

    @property
    def has_link(self) -> bool:
        """Whether its answers are `LinkedAnswer`, with a header Link."""
        return self.mode.has_link

    @cached_property
    def is_paginated(self) -> bool:
        return get_origin(self.answer) is Page

    @cached_property
    def answers_list(self) -> bool:
        """Whether its answer is a list. Where an object is required, the list becomes the member `data`."""
        return get_origin(self.answer) in {list, Sequence}

    @cached_property
    def answer_fields(self) -> frozenset[str]:
        """The fields of its answer if it is a `PATCH`: its caller may send an answer back."""
        return frozenset(self.answer.__struct_fields__) if self.method == "PATCH" else frozenset()

    @cached_property
    def read_only_fields(self) -> dict[str, Any]:
        """The types of the fields that such a caller may send although they cannot be changed, by name."""
        has_fields = self.method == "PATCH" and hasattr(self.answer, "__struct_fields__")
        fields = msgspec.structs.fields(self.answer) if has_fields else ()
        sent_fields = {*self.command.__struct_fields__} - {*self.path_fields}
        return {field.name: field.type for field in fields if field.name not in sent_fields}

    @cached_property
    def refuses(self) -> tuple[problems.ProblemType, ...]:
        """Every problem that its route can answer with, by status: declared ones, and those that its line implies."""
        implied = {
            problems.INTERNAL_ERROR: True,
            problems.SERVICE_UNAVAILABLE: True,
            problems.BAD_REQUEST: True,
            problems.VALIDATION_FAILED: True,
            problems.MISSING_API_KEY: not self.public,
            problems.INVALID_API_KEY: not self.public,
            problems.INSUFFICIENT_SCOPE: self.scope is not None,
            problems.RATE_LIMITED: self.limit is not None,
            problems.APPROVAL_REQUIRED: self.is_change_by_tool,
            problems.APPROVAL_DECLINED: self.is_change_by_tool,
            # An id that cannot exist is not found.
            problems.NOT_FOUND: bool(self.path_fields),
            problems.INVALID_JSON: self.method_has_body,
            problems.PAYLOAD_TOO_LARGE: self.method_has_body,
            problems.UNSUPPORTED_MEDIA_TYPE: self.method_has_body,
            problems.IDEMPOTENCY_KEY_REUSED: self.takes_idempotency_key,
        }
        types = {*self.mode.refuses, *(problem_type for problem_type, applies in implied.items() if applies)}
        return tuple(sorted(types, key=lambda kind: (kind.status, kind.code)))

    @cached_property
    def is_change_by_tool(self) -> bool:
        """Whether it is a tool that changes something: then a person may have to approve it first."""
        return self.tool is not None and not self.mode.reads

    @cached_property
    def noun(self) -> str:
        """The noun by which documents group it: its `group`, or the folder of its function."""
        return self.group or self.mode.function.__module__.split(".")[-2]

    @cached_property
    def description(self) -> str:
        return inspect.getdoc(self.mode.function) or ""

    @cached_property
    def summary(self) -> str:
        return self.description.split("\n")[0]

    @cached_property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()


Operations = Sequence[Operation]


Claim = Callable[[Tx[Any]], Awaitable[None]]
"""Marks a request as done, in the transaction that does it. Raises if it does not wait for a person any more."""


class ApprovedCall(NamedTuple):
    """A call that a person has approved, and that was run. `answer_key`: the idempotency key of the stored answer."""

    answer_key: str


class ApprovalGate(Protocol):
    """Stores the calls that a person must approve."""

    def covers(self, operation: Operation) -> bool:
        """Whether calls of this operation wait for a person."""
        ...

    async def request_approval(
        self, tx: Tx[Any], operation: Operation, caller: Caller, command: Command, key: str | None
    ) -> Problem | ApprovedCall:
        """Store a request, unless the call is already one. Returns what refuses the call, unless it was approved.

        key    the idempotency key of the call; None: it has none, and is the same request as the same call before
        """
        ...


class AgentLog(Protocol):
    """Stores what agents did, in the transaction that does it."""

    def covers(self, operation: Operation) -> bool:
        """Whether calls of this operation are stored."""
        ...

    async def version(self, tx: Tx[Any], operation: Operation, command: Any) -> str | None:
        """The version of what a call is about: a call that leaves it as it is has changed nothing.

        None: `store` itself leaves out calls that have changed nothing.
        """
        ...

    async def store(self, tx: Tx[Any], operation: Operation, answered_calls: Sequence[tuple[Call[Any], Any]]) -> None:
        """Store the calls of agents that were done, each with its answer."""
        ...
