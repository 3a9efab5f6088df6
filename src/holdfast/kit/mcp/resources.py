"""What agents can read: documents, and what operations answer at addresses made of their commands' fields."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from urllib.parse import unquote

from msgspec import UNSET, Struct, UnsetType

from holdfast.kit.command import Command, check, numbered
from holdfast.kit.mcp.jsonrpc import INVALID_PARAMS, Fault, Params, encode
from holdfast.kit.mcp.methods import Cacheable, Methods, Outcome, Result, Work, done, require_scope, required
from holdfast.kit.mcp.model import Agents, Catalogue, Change, Document, Entry, Template
from holdfast.kit.operation import Caller, Operation, Operations
from holdfast.kit.problems import Problem
from holdfast.kit.runner import Runner

LIVE = 0
"""How long clients may keep what can change at any moment."""


class NoSuchResource(Fault):
    """An address of nothing. Its code depends on the era."""

    def __init__(self, uri: str) -> None:
        super().__init__(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})


class ResourceList(Cacheable, kw_only=True, rename="camel"):
    resources: Sequence[Entry]
    next_cursor: str | UnsetType = UNSET


class TemplateEntry(Struct, frozen=True, rename="camel"):
    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"


class TemplateList(Cacheable, kw_only=True, rename="camel"):
    resource_templates: Sequence[TemplateEntry]


class Content(Struct, frozen=True, rename="camel"):
    uri: str
    mime_type: str
    text: str


class Contents(Cacheable, kw_only=True, rename="camel"):
    contents: tuple[Content]


class Resources:
    """The resources of a service."""

    def __init__(self, agents: Agents, operations: Operations, runner: Runner) -> None:
        by_name = {each.name: each for each in operations}
        self._documents = {each.entry.uri: each for each in agents.documents}
        self._families = [Family(each, by_name[each.operation], runner) for each in agents.templates]
        self._shelf = Shelf(agents.catalogue, by_name[agents.catalogue.operation], runner) if agents.catalogue else None
        self.methods: Methods = (
            {"resources/list": self.index, "resources/templates/list": self.templates, "resources/read": self.read}
            if agents.has_resources
            else {}
        )

    async def index(self, caller: Caller, params: Params) -> Work:
        """The documents, on the first page, and the pages of the catalogue."""
        documents = [each.entry for each in self._documents.values()] if params.cursor is None else []
        return Work("resources/list", partial(self._page, caller, documents, params.cursor))

    async def _page(self, caller: Caller, documents: Sequence[Entry], cursor: str | None) -> Outcome:
        if self._shelf and self.lists(caller):
            entries, following = await self._shelf.page(caller, cursor)
            return Outcome(ResourceList(resources=[*documents, *entries], next_cursor=following or UNSET, ttl_ms=LIVE))
        if cursor is not None:
            raise Fault(INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        return Outcome(ResourceList(resources=documents))

    async def templates(self, caller: Caller, params: Params) -> Work:
        """The families of resources that a caller may read."""
        if params.cursor is not None:
            raise Fault(INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        listed = [each.entry for each in self._families if caller.has(each.operation.scope)]
        return done("resources/templates/list", TemplateList(resource_templates=listed))

    async def read(self, caller: Caller, params: Params) -> Work:
        """What one address holds. Raises `NoSuchResource` and `insufficient_scope`."""
        return Work("resources/read", partial(self._find(caller, required(params.uri, "uri")), caller))

    async def subscribe(self, caller: Caller, params: Params) -> Work:
        """Yes, or no: streams carry all that a caller may read. Raises `NoSuchResource` and `insufficient_scope`."""
        self._find(caller, required(params.uri, "uri"))
        return done("resources/subscribe", Result())

    def _find(self, caller: Caller, uri: str) -> "Read":
        if document := self._documents.get(uri):
            return partial(read_document, document)
        for family in self._families:
            if (values := family.values(uri)) is not None:
                require_scope(caller, family.operation)
                return partial(family.read, uri, family.command(uri, values))
        raise NoSuchResource(uri)

    def heard(self, caller: Caller, changes: Iterable[Change]) -> list[str]:
        """The addresses among changes that a caller may hear of, each once."""
        return [
            uri for uri in dict.fromkeys(uri for each in changes for uri in each.uris) if self.may_read(caller, uri)
        ]

    def may_read(self, caller: Caller, uri: str) -> bool:
        """Whether an address is one of ours, and of the kind a caller may read."""
        return uri in self._documents or any(
            caller.has(each.operation.scope) and each.values(uri) is not None for each in self._families
        )

    def lists(self, caller: Caller) -> bool:
        """Whether a caller sees a list that changes."""
        return self._shelf is not None and caller.has(self._shelf.operation.scope)


Read = Callable[[Caller], Awaitable[Outcome]]


async def read_document(document: Document, caller: Caller) -> Outcome:
    entry = document.entry
    return Outcome(Contents(contents=(Content(entry.uri, entry.mime_type, document.text),)))


class Family:
    """A template, and the operation that answers at its addresses."""

    def __init__(self, template: Template, operation: Operation, runner: Runner) -> None:
        self.entry = TemplateEntry(template.uri, template.name, template.title, template.description)
        self.operation = operation
        self._run = runner[operation]
        self._shape = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template.uri)))

    def values(self, uri: str) -> dict[str, str] | None:
        """The fields of the command in an address; None when it is not of this family."""
        match = self._shape.fullmatch(uri)
        return {name: unquote(value) for name, value in match.groupdict().items()} if match else None

    def command(self, uri: str, values: dict[str, str]) -> Command:
        """Raises `NoSuchResource`: what cannot be an id is the id of nothing."""
        try:
            return check(self.operation.command, numbered(self.operation.command, values))
        except Problem as problem:
            raise NoSuchResource(uri) from problem

    async def read(self, uri: str, command: Command, caller: Caller) -> Outcome:
        try:
            answer = await self._run(caller, command)
        except Problem as problem:
            if problem.status == 404:
                raise NoSuchResource(uri) from problem
            raise
        return Outcome(Contents(contents=(Content(uri, self.entry.mime_type, encode(answer).decode()),), ttl_ms=LIVE))


class Shelf:
    """The catalogue, and the operation whose pages it shows."""

    def __init__(self, catalogue: Catalogue, operation: Operation, runner: Runner) -> None:
        self.operation = operation
        self._run = runner[operation]
        self._entries = catalogue.entries

    async def page(self, caller: Caller, cursor: str | None) -> tuple[Sequence[Entry], str | None]:
        """The entries of a page, and the cursor of the next one. Raises a `Problem` for a cursor that is none."""
        values = {} if cursor is None else {"cursor": cursor}
        answer = await self._run(caller, check(self.operation.command, values))
        return self._entries(answer), answer.next_cursor
