"""What a service offers to agents besides its operations: texts, resources and notifications of changes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from holdfast.kit.caller import Caller
from holdfast.kit.keys import Authenticate
from holdfast.kit.streams import Feed


class Entry(Struct, frozen=True, rename="camel"):
    """A resource, as `resources/list` shows it."""

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
    """A resource template: the answers of a reading operation, at addresses that contain the fields of its command.

    uri          such as `pool://{pool_id}/history`; one without fields is a single resource, and listed as such
    operation    the name of a reading operation
    """

    uri: str
    operation: str
    name: str
    title: str
    description: str


@dataclass(frozen=True)
class Catalogue:
    """The list of resources, made from the pages of a listing operation. Its command has the field `cursor`, and its
    answer has `next_cursor`.
    """

    operation: str
    entries: Callable[[Any], Sequence[Entry]]


class Change(Struct, frozen=True):
    """Resources that changed, and whether the list of resources changed."""

    uris: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Agents:
    """The endpoint for agents, as data.

    instructions         how the tools work together, for the model that uses them
    changes              the feed of changes that concern a caller; None: changes are not announced
    missed               all that changed for a caller after a position that its feed does not keep; None: not known
    limit                the rate limit that every message counts against, by name
    authenticate         turns the credential of a request into its caller; None: as in the rest of the service
    resource_metadata    address of the RFC 9728 document, named in challenges; None: there is no authorization server
    scope                the scopes that a client without an access token should ask for, separated by blanks
    origins              web origins whose pages may call, besides the service's own
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
    missed: Callable[[Caller, int], Awaitable[Change]] | None = None
    limit: str | None = None
    authenticate: Authenticate | None = None
    resource_metadata: str | None = None
    scope: str = ""
    origins: frozenset[str] = frozenset()

    @property
    def identity(self) -> dict[str, str]:
        """The name and version of the service, as `serverInfo` has them."""
        return {"name": self.name, "title": self.title, "version": self.version}

    @property
    def capabilities(self) -> dict[str, dict[str, bool]]:
        """The capabilities of the protocol. The list of tools changes only with a release, so it is not announced."""
        resources = {"subscribe": True, "listChanged": True} if self.changes else {}
        return {"tools": {}, "resources": resources} if self.has_resources else {"tools": {}}

    @property
    def has_resources(self) -> bool:
        return bool(self.documents or self.templates or self.catalogue)
