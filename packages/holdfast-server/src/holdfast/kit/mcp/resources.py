"""Resources that agents can read: documents, and the answers of operations at URIs with the command's fields."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from urllib.parse import unquote

from msgspec import UNSET, Struct, UnsetType

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, check, with_integers
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Access, admit
from holdfast.kit.mcp import jsonrpc as rpc
from holdfast.kit.mcp.model import Change, Document, EndpointConfig, ListedBy, ResourceEntry, Template
from holdfast.kit.operations.operation import Operation, Operations
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner

LIVE_TTL_MS = 0
"""Milliseconds for which clients may cache resources that can change at any moment."""


class NoSuchResource(rpc.RpcError):
    """There is no resource at the URI. The code of the error depends on the era."""

    def __init__(self, uri: str) -> None:
        super().__init__(rpc.INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})


class ResourceList(rpc.CacheableResult, kw_only=True, rename="camel"):
    resources: Sequence[ResourceEntry]
    next_cursor: str | UnsetType = UNSET


class TemplateEntry(Struct, frozen=True, rename="camel"):
    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"


class TemplateList(rpc.CacheableResult, kw_only=True, rename="camel"):
    resource_templates: Sequence[TemplateEntry]


class ResourceContent(Struct, frozen=True, rename="camel"):
    uri: str
    mime_type: str
    text: str


class ResourceContents(rpc.CacheableResult, kw_only=True, rename="camel"):
    contents: tuple[ResourceContent]


class ResourceMethods:
    """The methods for the resources of a service."""

    def __init__(self, config: EndpointConfig, operations: Operations, runner: Runner, limits: Limits) -> None:
        self._limits = limits
        by_name = {operation.name: operation for operation in operations}
        self._documents = {document.entry.uri: document for document in config.documents}
        self._families = [
            ResourceFamily(template, by_name[template.operation], runner) for template in config.templates
        ]
        listed_by = config.listed_by
        self._listed = ListedResources(listed_by, by_name[listed_by.operation], runner) if listed_by else None
        self.methods: rpc.Methods = (
            {"resources/list": self.index, "resources/templates/list": self.templates, "resources/read": self.read}
            if config.has_resources
            else {}
        )

    async def index(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        """The list of resources: single resources on the first page, and the pages of the list operation."""
        single: list[ResourceEntry] = []
        if params.cursor is None:
            single += [document.entry for document in self._documents.values()]
            single += [
                family.entry for family in self._families if family.is_single and caller.has(family.operation.scope)
            ]
        return rpc.AdmittedRequest(
            rpc.method_access("resources/list"), partial(self._page, caller, single, params.cursor)
        )

    async def _page(self, caller: Caller, single: Sequence[ResourceEntry], cursor: str | None) -> rpc.CallResult:
        if self._listed and self.lists(caller):
            await admit(self._listed.access, self._limits, caller)
            entries, following = await self._listed.page(caller, cursor)
            return rpc.CallResult(
                ResourceList(resources=[*single, *entries], next_cursor=following or UNSET, ttl_ms=LIVE_TTL_MS)
            )
        if cursor is not None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        return rpc.CallResult(ResourceList(resources=single))

    async def templates(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        """The resource templates that a caller may read."""
        if params.cursor is not None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, "This list has a single page: leave out the cursor.")
        templates = [
            family.template for family in self._families if not family.is_single and caller.has(family.operation.scope)
        ]
        return rpc.completed_request("resources/templates/list", TemplateList(resource_templates=templates))

    async def read(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        """The content of one resource. Raises `NoSuchResource` and `insufficient_scope`."""
        return rpc.AdmittedRequest(
            rpc.method_access("resources/read"),
            partial(await self._find(caller, rpc.required_param(params.uri, "uri")), caller),
        )

    async def subscribe(self, caller: Caller, params: rpc.Params) -> rpc.AdmittedRequest:
        """Confirm a subscription. Nothing is stored: a stream has changes of all resources that its caller may read.

        Raises `NoSuchResource` and `insufficient_scope`.
        """
        await self._find(caller, rpc.required_param(params.uri, "uri"))
        return rpc.completed_request("resources/subscribe", rpc.Result())

    async def _find(self, caller: Caller, uri: str) -> "ReadResource":
        if document := self._documents.get(uri):
            return partial(read_document, document)
        for family in self._families:
            if (values := family.values(uri)) is not None:
                await admit(family.access, self._limits, caller)
                return partial(family.read, uri, family.command(uri, values))
        raise NoSuchResource(uri)

    def readable(self, caller: Caller, changes: Iterable[Change]) -> list[str]:
        """The changed URIs that a caller may read, without duplicates."""
        return [
            uri for uri in dict.fromkeys(uri for change in changes for uri in change.uris) if self.may_read(caller, uri)
        ]

    def may_read(self, caller: Caller, uri: str) -> bool:
        """Whether a URI belongs to this service, and to a template that the caller may read."""
        return uri in self._documents or any(
            caller.has(family.operation.scope) and family.values(uri) is not None for family in self._families
        )

    def lists(self, caller: Caller) -> bool:
        """Whether the list has pages of the list operation for a caller. Such a list can change."""
        return self._listed is not None and caller.has(self._listed.operation.scope)


ReadResource = Callable[[Caller], Awaitable[rpc.CallResult]]


async def read_document(document: Document, caller: Caller) -> rpc.CallResult:
    entry = document.entry
    return rpc.CallResult(ResourceContents(contents=(ResourceContent(entry.uri, entry.mime_type, document.text),)))


class ResourceFamily:
    """A resource template, and the operation that answers at its URIs."""

    def __init__(self, template: Template, operation: Operation, runner: Runner) -> None:
        self.template = TemplateEntry(template.uri, template.name, template.title, template.description)
        self.entry = ResourceEntry(template.uri, template.name, template.title, template.description)
        self.is_single = "{" not in template.uri
        self.access = Access.of(operation, runner)
        self.operation = operation
        self._run = runner.run_of(operation)
        self._shape = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template.uri)))

    def values(self, uri: str) -> dict[str, str] | None:
        """The fields of the command in a URI; None if the URI does not match the template."""
        match = self._shape.fullmatch(uri)
        return {name: unquote(value) for name, value in match.groupdict().items()} if match else None

    def command(self, uri: str, values: dict[str, str]) -> Command:
        """The command with these fields. Raises `NoSuchResource` if they are invalid, such as an id of letters."""
        try:
            return check(self.operation.command, with_integers(self.operation.command, values))
        except Problem as problem:
            raise NoSuchResource(uri) from problem

    async def read(self, uri: str, command: Command, caller: Caller) -> rpc.CallResult:
        try:
            answer = await self._run(caller, command)
        except Problem as problem:
            if problem.status == 404:
                raise NoSuchResource(uri) from problem
            raise
        return rpc.CallResult(
            ResourceContents(
                contents=(ResourceContent(uri, self.template.mime_type, rpc.encode(answer).decode()),),
                ttl_ms=LIVE_TTL_MS,
            )
        )


class ListedResources:
    """The pages of the list operation, as entries of resources."""

    def __init__(self, listed_by: ListedBy, operation: Operation, runner: Runner) -> None:
        self.access = Access.of(operation, runner)
        self.operation = operation
        self._run = runner.run_of(operation)
        self._entries = listed_by.entries

    async def page(self, caller: Caller, cursor: str | None) -> tuple[Sequence[ResourceEntry], str | None]:
        """The entries of a page, and the cursor of the next page. Raises a `Problem` for an invalid cursor."""
        values = {} if cursor is None else {"cursor": cursor}
        answer = await self._run(caller, check(self.operation.command, values))
        return self._entries(answer), answer.next_cursor
