"""One line of a service's table: which route or tool, or both, runs which function.

An operation is a plain async function, `(tx, caller, command) -> answer`, or, where many callers share one statement,
`(tx, calls) -> answers`, or, where it asks others than the database too, `(database, caller, command) -> answer`, which
makes its transactions itself. Both doors and every document are derived from the table; see `docs/decisions/0001`.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

from holdfast.kit.command import Command
from holdfast.kit.database import transacts_itself
from holdfast.kit.problems import Problem

C = TypeVar("C", bound=Command)
T = TypeVar("T")


class Caller(Struct, frozen=True):
    """Who asks.

    key_id     the API key that was shown; 0 is a caller without one
    tenant_id  the organizer or shop a key belongs to; None is an admin key, which is unrestricted
    scopes     what the caller may do; None where nothing limits it
    """

    key_id: int
    tenant_id: int | None
    scopes: frozenset[str] | None = None

    @property
    def is_admin(self) -> bool:
        return self.tenant_id is None

    @property
    def tenant(self) -> int:
        """The tenant, where every key has one."""
        assert self.tenant_id is not None
        return self.tenant_id

    @property
    def counted_as(self) -> str:
        """Whose calls rate limits count together: those of one key, or of a tenant that called without one."""
        return f"key {self.key_id}" if self.key_id else f"tenant {self.tenant_id}"

    def may_access(self, tenant_id: int) -> bool:
        return self.tenant_id is None or self.tenant_id == tenant_id

    def has(self, scope: str | None) -> bool:
        return scope is None or self.scopes is None or scope in self.scopes


NOBODY = Caller(key_id=0, tenant_id=0)
"""The caller of a public operation: it owns nothing."""

ADMIN = Caller(key_id=0, tenant_id=None)
"""Whoever has the command line: unrestricted, without a key."""


class Call(Struct, Generic[C], frozen=True):
    """One of the many calls that share a statement."""

    caller: Caller
    command: C


class Paged(Command):
    """A command that reads one page of a list."""

    offset: Annotated[int, Meta(ge=0, le=100_000, description="Items to skip.")] = 0
    limit: Annotated[int, Meta(ge=1, le=500, description="Items on the page.")] = 100


class Pagination(Struct):
    """Where a page lies in its list."""

    count: Annotated[int, Meta(description="Items in this response.")]
    offset: int
    limit: int
    has_more: Annotated[bool, Meta(description="True when more items exist beyond the page.")]


class Page(Struct, Generic[T]):
    """One page of a list."""

    data: list[T]
    pagination: Pagination


def page(rows: list[T], command: Paged) -> Page[T]:
    """The page of at most `command.limit` of `rows`. Operations ask the database for one more: it is `has_more`."""
    data = rows[: command.limit]
    return Page(data, Pagination(len(data), command.offset, command.limit, len(rows) > command.limit))


@dataclass(frozen=True)
class Hints:
    """What a tool does to the world, as agents and those who watch over them are told (the annotations of MCP)."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool = False


READS = Hints(read_only=True, destructive=False, idempotent=True)
ADDS = Hints(read_only=False, destructive=False, idempotent=False)
FETCHES = Hints(read_only=False, destructive=False, idempotent=False, open_world=True)
SETS = Hints(read_only=False, destructive=False, idempotent=True)
OVERWRITES = Hints(read_only=False, destructive=True, idempotent=True)
REWRITES = Hints(read_only=False, destructive=True, idempotent=False)


@dataclass(frozen=True)
class Operation:
    """A line of the table.

    name      `verb_noun`: the operation id of OpenAPI, and the name of the tool
    route     method and path; `{names}` are fields of the command. None: a tool only
    run       the function; its docstring is the operation's description, its annotations are its schemas
    tool      what it does as a tool; None: not a tool
    scope     what a key must be allowed to do
    body      the member that wraps the command's fields in a JSON body
    status    of success; an operation that answers None has no body
    bare      the answer is the whole body instead of the member `data`
    public    needs no API key
    limit     the rate limit it counts against, by name
    records   a GET that may store something all the same, and so runs in a transaction
    """

    name: str
    route: str | None
    run: Callable[..., Awaitable[Any]]
    tool: Hints | None = None
    scope: str | None = None
    body: str | None = None
    status: int = 200
    bare: bool = False
    public: bool = False
    limit: str | None = None
    records: bool = False

    @cached_property
    def method(self) -> str:
        return self.route.split()[0] if self.route else ""

    @cached_property
    def path(self) -> str:
        return self.route.split()[1] if self.route else ""

    @cached_property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        reads = self.method == "GET" or (self.tool is not None and self.tool.read_only)
        return reads and not self.records

    @cached_property
    def takes_body(self) -> bool:
        return self.method in {"POST", "PATCH", "PUT"}

    @cached_property
    def repeatable(self) -> bool:
        """Whether it may be sent again with an Idempotency-Key: it creates something, for somebody we know."""
        return self.method == "POST" and self.status in {201, 202} and not self.public

    @cached_property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.run, include_extras=True)

    @cached_property
    def many(self) -> bool:
        """Whether one run serves many callers."""
        return "calls" in inspect.signature(self.run).parameters

    @cached_property
    def transacts_itself(self) -> bool:
        """Whether it does work elsewhere, between transactions of its own."""
        return transacts_itself(self.run)

    @cached_property
    def command(self) -> type[Command]:
        if self.many:
            call = get_args(self._hints["calls"])[0]
            return get_args(call)[0]
        return self._hints["command"]

    @cached_property
    def answer(self) -> Any:
        """The type of one answer; None for an empty one."""
        answer = self._hints["return"]
        if self.many:
            choices = [choice for choice in get_args(get_args(answer)[0]) if choice is not Problem]
            return choices[0]
        return None if answer is type(None) else answer

    @cached_property
    def paged(self) -> bool:
        return get_origin(self.answer) is Page

    @cached_property
    def listed(self) -> bool:
        """Whether it answers with a bare list, which stands in the member `data` wherever an object is wanted."""
        return get_origin(self.answer) in {list, Sequence}

    @cached_property
    def noun(self) -> str:
        """The slice it belongs to, which is the noun of its URL."""
        return self.run.__module__.split(".")[-2]

    @cached_property
    def description(self) -> str:
        return inspect.getdoc(self.run) or ""

    @cached_property
    def summary(self) -> str:
        return self.description.split("\n")[0]

    @cached_property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()


Operations = Sequence[Operation]
