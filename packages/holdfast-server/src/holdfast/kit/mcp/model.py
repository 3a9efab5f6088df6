"""The parts of a service's endpoint for agents besides operations: texts, resources and notifications of changes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from holdfast.kit.contract.caller import Caller
from holdfast.kit.http.event_streams import Feed
from holdfast.kit.security.api_keys import Authenticate


class ResourceEntry(Struct, frozen=True, rename="camel"):
    """A resource in the answer to `resources/list`."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"


@dataclass(frozen=True)
class Document:
    """A text that is the same for every caller."""

    entry: ResourceEntry
    text: str


@dataclass(frozen=True)
class Template:
    """A resource template: the answers of a read operation, at URIs that contain the fields of its command.

    uri          such as `pool://{pool_id}/history`; a URI without fields is listed as a single resource
    operation    the name of a read operation
    """

    uri: str
    operation: str
    name: str
    title: str
    description: str


@dataclass(frozen=True)
class ListedBy:
    """Resources that a list operation finds. Its command has `cursor`, and its answer has `next_cursor`."""

    operation: str
    entries: Callable[[Any], Sequence[ResourceEntry]]


class Change(Struct, frozen=True):
    """Resources that changed, and whether the list of resources changed."""

    uris: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class EndpointConfig:
    """The endpoint for agents, as data.

    instructions         how the tools work together, for the model that uses them
    changes              returns the feed of changes for a caller; None: changes are not announced
    missed               returns all changes for a caller after a position that its feed has dropped; None: not known
    limit                the name of the rate limit that every message counts against
    authenticate         turns the credential of a request into its caller; None: as in the rest of the service
    resource_metadata    the URL of the RFC 9728 document, named in challenges; None: there is no authorization server
    scope                the scopes that a client without an access token should request, separated by blanks
    origins              web origins whose pages may call, in addition to the service's own origin
    """

    name: str
    title: str
    version: str
    base_url: str
    instructions: str
    documents: Sequence[Document] = ()
    templates: Sequence[Template] = ()
    listed_by: ListedBy | None = None
    changes: Callable[[Caller], Awaitable[Feed[Change]]] | None = None
    missed: Callable[[Caller, int], Awaitable[Change]] | None = None
    limit: str | None = None
    authenticate: Authenticate | None = None
    resource_metadata: str | None = None
    scope: str = ""
    origins: frozenset[str] = frozenset()

    @property
    def identity(self) -> dict[str, str]:
        """The name and version of the service for `serverInfo`."""
        return {"name": self.name, "title": self.title, "version": self.version}

    @property
    def capabilities(self) -> dict[str, dict[str, bool]]:
        """The capabilities of the protocol. The list of tools changes only with a release, so it is not announced."""
        resources = {"subscribe": True, "listChanged": True} if self.changes else {}
        return {"tools": {}, "resources": resources} if self.has_resources else {"tools": {}}

    @property
    def has_resources(self) -> bool:
        return bool(self.documents or self.templates or self.listed_by)
