"""Resources that agents can read: documents, and the answers of operations at addresses with the command's fields."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from urllib.parse import unquote

from msgspec import UNSET, Struct, UnsetType

from holdfast.kit.caller import Caller
from holdfast.kit.command import Command, check, numbered
from holdfast.kit.handler import Access, admit
from holdfast.kit.limits import Limits
from holdfast.kit.mcp import jsonrpc as rpc
from holdfast.kit.mcp.model import Agents, Catalogue, Change, Document, Entry, Template
from holdfast.kit.operation import Operation, Operations
from holdfast.kit.problems import Problem
from holdfast.kit.runner import Runner

LIVE = 0
"""Milliseconds for which clients may cache what can change at any moment."""


class NoSuchResource(rpc.Fault):
    """There is no resource at the address. The code of the error depends on the era."""

    def __init__(self, uri: str) -> None:
        super().__init__(rpc.INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})


class ResourceList(rpc.Cacheable, kw_only=True, rename="camel"):
    resources: Sequence[Entry]
    next_cursor: str | UnsetType = UNSET


class TemplateEntry(Struct, frozen=True, rename="camel"):
    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"


class TemplateList(rpc.Cacheable, kw_only=True, rename="camel"):
    resource_templates: Sequence[TemplateEntry]


class Content(Struct, frozen=True, rename="camel"):
    uri: str
    mime_type: str
    text: str


class Contents(rpc.Cacheable, kw_only=True, rename="camel"):
    contents: tuple[Content]


class Resources:
    """The resources of a service."""

    def __init__(self, agents: Agents, operations: Operations, runner: Runner, limits: Limits) -> None:
        self._limits = limits
        by_name = {each.name: each for each in operations}
        self._documents = {each.entry.uri: each for each in agents.documents}
        self._families = [Family(each, by_name[each.operation], runner) for each in agents.templates]
        catalogue = agents.catalogue
        self._listing = Listing(catalogue, by_name[catalogue.operation], runner) if catalogue else None
        self.methods: rpc.Methods = (
            {"resources/list": self.index, "resources/templates/list": self.templates, "resources/read": self.read}
            if agents.has_resources
            else {}
        )

    async def index(self, caller: Caller, params: rpc.Params) -> rpc.Work:
        """The list of resources: the single ones on the first page, and the pages of the catalogue."""
        single: list[Entry] = []
        if params.cursor is None:
            single += [each.entry for each in self._documents.values()]
            single += [each.entry for each in self._families if each.is_single and caller.has(each.operation.scope)]
        return rpc.Work(rpc.named("resources/list"), partial(self._page, caller, single, params.cursor))

    async def _page(self, caller: Caller, single: Sequence[Entry], cursor: str | None) -> rpc.Outcome:
        if self._listing and self.lists(caller):
            await admit(self._listing.access, self._limits, caller)
            entries, following = await self._listing.page(caller, cursor)
            return rpc.Outcome(ResourceList(resources=[*single, *entries], next_cursor=following or UNSET, ttl_ms=LIVE))
        if cursor is not None:
            raise rpc.Fault(rpc.INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        return rpc.Outcome(ResourceList(resources=single))

    async def templates(self, caller: Caller, params: rpc.Params) -> rpc.Work:
        """The resource templates that a caller may read."""
        if params.cursor is not None:
            raise rpc.Fault(rpc.INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        listed = [each.template for each in self._families if not each.is_single and caller.has(each.operation.scope)]
        return rpc.done("resources/templates/list", TemplateList(resource_templates=listed))

    async def read(self, caller: Caller, params: rpc.Params) -> rpc.Work:
        """The content of one resource. Raises `NoSuchResource` and `insufficient_scope`."""
        return rpc.Work(
            rpc.named("resources/read"),
            partial(await self._find(caller, rpc.required(params.uri, "uri")), caller),
        )

    async def subscribe(self, caller: Caller, params: rpc.Params) -> rpc.Work:
        """Confirm a subscription. Nothing is stored: a stream carries the changes of all that its caller may read.

        Raises `NoSuchResource` and `insufficient_scope`.
        """
        await self._find(caller, rpc.required(params.uri, "uri"))
        return rpc.done("resources/subscribe", rpc.Result())

    async def _find(self, caller: Caller, uri: str) -> "Read":
        if document := self._documents.get(uri):
            return partial(read_document, document)
        for family in self._families:
            if (values := family.values(uri)) is not None:
                await admit(family.access, self._limits, caller)
                return partial(family.read, uri, family.command(uri, values))
        raise NoSuchResource(uri)

    def readable(self, caller: Caller, changes: Iterable[Change]) -> list[str]:
        """The changed addresses that a caller may read, each once."""
        return [
            uri for uri in dict.fromkeys(uri for each in changes for uri in each.uris) if self.may_read(caller, uri)
        ]

    def may_read(self, caller: Caller, uri: str) -> bool:
        """Whether an address is one of this service, and of a kind that the caller may read."""
        return uri in self._documents or any(
            caller.has(each.operation.scope) and each.values(uri) is not None for each in self._families
        )

    def lists(self, caller: Caller) -> bool:
        """Whether a caller may read the catalogue, which can change."""
        return self._listing is not None and caller.has(self._listing.operation.scope)


Read = Callable[[Caller], Awaitable[rpc.Outcome]]


async def read_document(document: Document, caller: Caller) -> rpc.Outcome:
    entry = document.entry
    return rpc.Outcome(Contents(contents=(Content(entry.uri, entry.mime_type, document.text),)))


class Family:
    """A resource template, and the operation that answers at its addresses."""

    def __init__(self, template: Template, operation: Operation, runner: Runner) -> None:
        self.template = TemplateEntry(template.uri, template.name, template.title, template.description)
        self.entry = Entry(template.uri, template.name, template.title, template.description)
        self.is_single = "{" not in template.uri
        self.access = Access(operation.name, operation.scope, operation.limit)
        self.operation = operation
        self._run = runner[operation]
        self._shape = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template.uri)))

    def values(self, uri: str) -> dict[str, str] | None:
        """The fields of the command in an address; None when the address does not match the template."""
        match = self._shape.fullmatch(uri)
        return {name: unquote(value) for name, value in match.groupdict().items()} if match else None

    def command(self, uri: str, values: dict[str, str]) -> Command:
        """The command with these fields. Raises `NoSuchResource` if they are not valid, such as an id of letters."""
        try:
            return check(self.operation.command, numbered(self.operation.command, values))
        except Problem as problem:
            raise NoSuchResource(uri) from problem

    async def read(self, uri: str, command: Command, caller: Caller) -> rpc.Outcome:
        try:
            answer = await self._run(caller, command)
        except Problem as problem:
            if problem.status == 404:
                raise NoSuchResource(uri) from problem
            raise
        return rpc.Outcome(
            Contents(contents=(Content(uri, self.template.mime_type, rpc.encode(answer).decode()),), ttl_ms=LIVE)
        )


class Listing:
    """The catalogue, and the operation whose pages it shows."""

    def __init__(self, catalogue: Catalogue, operation: Operation, runner: Runner) -> None:
        self.access = Access(operation.name, operation.scope, operation.limit)
        self.operation = operation
        self._run = runner[operation]
        self._entries = catalogue.entries

    async def page(self, caller: Caller, cursor: str | None) -> tuple[Sequence[Entry], str | None]:
        """The entries of a page, and the cursor of the next one. Raises a `Problem` for a cursor that is not valid."""
        values = {} if cursor is None else {"cursor": cursor}
        answer = await self._run(caller, check(self.operation.command, values))
        return self._entries(answer), answer.next_cursor
