"""What a service tells agents beside its operations."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from holdfast.kit.keys import Authenticate
from holdfast.kit.operation import Caller
from holdfast.kit.streams import Feed


class Entry(Struct, frozen=True, rename="camel"):
    """A resource as lists show it."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str = "application/json"


@dataclass(frozen=True)
class Document:
    """A text that is the same for every caller."""

    entry: Entry
    text: str


@dataclass(frozen=True)
class Template:
    """A family of resources: what an operation answers, at an address made of its command's fields.

    uri          such as `pool://{pool_id}/history`
    operation    the name of a reading operation
    """

    uri: str
    operation: str
    name: str
    title: str
    description: str


@dataclass(frozen=True)
class Catalogue:
    """Which resources there are: the pages of a listing operation, whose command takes `cursor` and whose answer has
    `next_cursor`.
    """

    operation: str
    entries: Callable[[Any], Sequence[Entry]]


class Change(Struct, frozen=True):
    """Resources that changed, and whether the list of them did."""

    uris: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Agents:
    """The door for agents, as data.

    instructions         how the tools work together, for the model that uses them
    changes              the feed of what changes for a caller; None: nothing is ever announced
    limit                the rate limit that calls of tools count against, by name
    authenticate         turns the credential of a request into its caller; None: as at the service's other doors
    resource_metadata    address of the RFC 9728 document, named in challenges; None: there is no authorization server
    scope                what a client that has no access token yet should ask for, separated by blanks
    origins              web origins whose pages may call, beside the service's own
    """

    name: str
    title: str
    version: str
    base_url: str
    instructions: str
    documents: Sequence[Document] = ()
    templates: Sequence[Template] = ()
    catalogue: Catalogue | None = None
    changes: Callable[[Caller], Awaitable[Feed[Change]]] | None = None
    limit: str | None = None
    authenticate: Authenticate | None = None
    resource_metadata: str | None = None
    scope: str = ""
    origins: frozenset[str] = frozenset()

    @property
    def identity(self) -> dict[str, str]:
        """The service as it introduces itself."""
        return {"name": self.name, "title": self.title, "version": self.version}

    @property
    def capabilities(self) -> dict[str, dict[str, bool]]:
        """What a client may ask for. The list of tools changes with a release, not while anybody looks."""
        resources = {"subscribe": True, "listChanged": True} if self.changes else {}
        return {"tools": {}, "resources": resources} if self.has_resources else {"tools": {}}

    @property
    def has_resources(self) -> bool:
        return bool(self.documents or self.templates or self.catalogue)
