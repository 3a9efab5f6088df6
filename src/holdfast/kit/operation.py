"""One line of a service's table: the route or tool, or both, and the function they run.

REST, MCP and every document are derived from the table; see `docs/decisions/0001`.
"""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_origin

from holdfast.kit import problems
from holdfast.kit.command import Command
from holdfast.kit.modes import AnyMode
from holdfast.kit.pagination import OffsetPage, Page, in_short_pages


@dataclass(frozen=True)
class Hints:
    """The effects of a tool, for agents and for those who supervise them (the annotations of MCP)."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool = False


READS = Hints(read_only=True, destructive=False, idempotent=True)
ADDS = Hints(read_only=False, destructive=False, idempotent=False)
FETCHES = Hints(read_only=False, destructive=False, idempotent=False, open_world=True)
SETS = Hints(read_only=False, destructive=False, idempotent=True)
OVERWRITES = Hints(read_only=False, destructive=True, idempotent=True)
RECONCILES = Hints(read_only=False, destructive=True, idempotent=True, open_world=True)
REWRITES = Hints(read_only=False, destructive=True, idempotent=False)


@dataclass(frozen=True)
class Operation:
    """A line of the table.

    name      `verb_noun`: the operation id of OpenAPI, and the name of the tool
    route     method and path; `{names}` are fields of the command. None: it has no route
    run       the function, in its mode; its docstring is the description, its annotations are the schemas
    tool      the effects of the tool; None: it is not a tool
    scope     the scope that a caller must have
    body      the member that wraps the command's fields in a JSON body
    status    the HTTP status of success; an operation that answers None has no body
    bare      the answer is the whole body instead of the member `data`
    public    needs no credential
    limit     the rate limit it counts against, by name
    """

    name: str
    route: str | None
    run: AnyMode
    tool: Hints | None = None
    scope: str | None = None
    body: str | None = None
    status: int = 200
    bare: bool = False
    public: bool = False
    limit: str | None = None

    @cached_property
    def method(self) -> str:
        return self.route.split()[0] if self.route else ""

    @cached_property
    def path(self) -> str:
        return self.route.split()[1] if self.route else ""

    @cached_property
    def takes_body(self) -> bool:
        """Whether requests have a body: their command has fields that the path does not give."""
        return self.method in {"POST", "PATCH", "PUT"} and set(self.command.__struct_fields__) > {*self.path_fields}

    @cached_property
    def repeatable(self) -> bool:
        """Whether it takes an Idempotency-Key: it creates something, and its caller is authenticated."""
        return self.method == "POST" and self.status in {201, 202} and not self.public

    @cached_property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def command(self) -> type[Command]:
        return self.run.command

    @cached_property
    def arguments(self) -> type[Command]:
        """The command as its tool takes it: lists have shorter pages."""
        return in_short_pages(self.command) if issubclass(self.command, OffsetPage) else self.command

    @cached_property
    def answer(self) -> Any:
        """The type of one answer; None for an empty one."""
        return self.run.answer

    @cached_property
    def answers_page(self) -> bool:
        return get_origin(self.answer) is Page

    @cached_property
    def answers_list(self) -> bool:
        """Whether its answer is a list, which becomes the member `data` where an object is required."""
        return get_origin(self.answer) in {list, Sequence}

    @cached_property
    def returned(self) -> frozenset[str]:
        """The fields of what it changes, if it is a `PATCH`: its caller may send back what it was answered."""
        return frozenset(self.answer.__struct_fields__) if self.method == "PATCH" else frozenset()

    @cached_property
    def read_only(self) -> frozenset[str]:
        """The fields that such a caller may send, and that are ignored."""
        return self.returned - {*self.command.__struct_fields__}

    @cached_property
    def refuses(self) -> tuple[problems.ProblemType, ...]:
        """Every problem that its route can answer with, by status: those it declares, and those its line implies."""
        implied = {
            problems.INTERNAL_ERROR: True,
            problems.SERVICE_UNAVAILABLE: True,
            problems.BAD_REQUEST: True,
            problems.VALIDATION_FAILED: True,
            problems.MISSING_API_KEY: not self.public,
            problems.INVALID_API_KEY: not self.public,
            problems.INSUFFICIENT_SCOPE: self.scope is not None,
            problems.RATE_LIMITED: self.limit is not None,
            # An id that cannot exist is not found.
            problems.NOT_FOUND: bool(self.path_fields),
            problems.INVALID_JSON: self.takes_body,
            problems.PAYLOAD_TOO_LARGE: self.takes_body,
            problems.UNSUPPORTED_MEDIA_TYPE: self.takes_body,
            problems.IDEMPOTENCY_KEY_REUSED: self.repeatable,
        }
        types = {*self.run.refuses, *(each for each, applies in implied.items() if applies)}
        return tuple(sorted(types, key=lambda each: (each.status, each.code)))

    @cached_property
    def noun(self) -> str:
        """The feature it belongs to, which is the noun in its URL."""
        return self.run.function.__module__.split(".")[-2]

    @cached_property
    def description(self) -> str:
        return inspect.getdoc(self.run.function) or ""

    @cached_property
    def summary(self) -> str:
        return self.description.split("\n")[0]

    @cached_property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()


Operations = Sequence[Operation]
