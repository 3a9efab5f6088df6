"""The page "Agents" of a console: how agents connect (links, commands and settings, for each program as it has them),
which are connected, and what they did.

A service says which credentials there are and what was done with them (`AgentDirectory`). The page is the same in both.

Sources, as of November 2026: claude.ai (support.claude.com, "custom connectors"), ChatGPT
(developers.openai.com/plugins/quickstart), Cursor (cursor.com/docs/mcp/install-links), VS Code
(code.visualstudio.com/api/extension-guides/ai/mcp), Claude Code (code.claude.com/docs/en/mcp), Codex
(developers.openai.com/codex/mcp), the bridge `mcp-remote` (npmjs.com/package/mcp-remote).
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from ipaddress import ip_address
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlsplit

from msgspec import Struct

from holdfast.accounts.agents.approvals import WaitingRequest
from holdfast.accounts.agents.limits import AgentLimit
from holdfast.accounts.console import Console
from holdfast.accounts.sessions import Session
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.page_cache import constant_page
from holdfast.kit.pages.site import Site

KEY = "YOUR_KEY"
"""Stands for the key in settings that people copy."""


class ConnectionDetails(Struct, frozen=True):
    """What agents need to connect to the endpoint of a service.

    address     the address of the endpoint
    name        the short name of the service in a list of connections
    by_oauth    whether the service lets a person allow it on a page; else agents need a key
    """

    address: str
    name: str
    by_oauth: bool

    @property
    def is_public(self) -> bool:
        """Whether programs of other machines may reach the address: it has https and names no machine of a network."""
        parts = urlsplit(self.address)
        host = parts.hostname or ""
        try:
            return parts.scheme == "https" and ip_address(host).is_global
        except ValueError:
            return parts.scheme == "https" and "." in host and not host.endswith((".localhost", ".local", ".internal"))

    @property
    def cursor_link(self) -> str:
        """The link that adds it to Cursor."""
        config = quote(b64encode(_compact({"url": self.address}).encode()).decode(), safe="")
        return f"cursor://anysphere.cursor-deeplink/mcp/install?name={self.name}&config={config}"

    @property
    def vscode_link(self) -> str:
        """The link that adds it to VS Code."""
        config = {"name": self.name, "type": "http", "url": self.address}
        return f"vscode:mcp/install?{quote(_compact(config), safe='')}"

    @property
    def claude_code_command(self) -> str:
        """The command that adds it to Claude Code."""
        header = "" if self.by_oauth else f' --header "Authorization: Bearer {KEY}"'
        return f"claude mcp add --transport http {self.name} {self.address}{header}"

    @property
    def codex_command(self) -> str:
        """The command that adds it to Codex, and asks the person."""
        return f"codex mcp add {self.name} --url {self.address}"

    @property
    def cursor_settings(self) -> str:
        """The contents of `mcp.json` of Cursor, without a key."""
        return _indented({"mcpServers": {self.name: {"url": self.address}}})

    @property
    def vscode_settings(self) -> str:
        """The contents of `mcp.json` of VS Code, which asks for the key."""
        server = {"type": "http", "url": self.address, "headers": {"Authorization": "Bearer ${input:key}"}}
        key_input = {"type": "promptString", "id": "key", "description": "API key", "password": True}
        return _indented({"servers": {self.name: server}, "inputs": [key_input]})

    @property
    def bridge_settings(self) -> str:
        """Settings of Cursor and Claude Desktop that start a bridge, which sends a key. It needs Node."""
        arguments = ["-y", "mcp-remote", self.address, "--header", "Authorization:${AUTH_HEADER}"]
        server = {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": f"Bearer {KEY}"}}
        return _indented({"mcpServers": {self.name: server}})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2)


AGENTS = "/console/agents"
DONE = f"{AGENTS}/done"
REQUESTS = f"{AGENTS}/requests"
"""The path of what waits for a person; that of one request ends with its id."""

COPY_SCRIPT = "copy.js"

MAX_LINES = 8
"""The most lines of what agents did on the page itself; older ones are on pages of their own."""

PAGE_LINES = 40


class AgentCard(Struct, kw_only=True):
    """A credential of agents: an API key, or an app that a person has connected.

    key_id       the id of the key; None for an app
    client_id    the id of the app; None for a key
    origin       where it comes from, as a sentence; empty: unknown
    abilities    what it may do, each as a sentence
    programs     what the programs call themselves that used it
    remove       the path of the page that asks whether to remove it
    limit        what it may do in a day; None: any number
    """

    key_id: int | None = None
    client_id: str | None = None
    name: str
    origin: str = ""
    abilities: Sequence[str]
    programs: Sequence[str] = ()
    since: datetime
    used_at: datetime | None
    remove: str
    limit: AgentLimit | None


class AgentLine(Struct, kw_only=True):
    """One line of what agents did.

    action       what the template of the service writes the sentence from
    undo         the path of the page that asks whether to undo it; empty: it cannot be undone
    is_undone    whether it was undone
    """

    icon: str
    at: datetime
    action: Any
    undo: str = ""
    is_undone: bool = False


class FieldChange(NamedTuple):
    """A field that a request changes.

    before    empty if the request makes something new
    moment    the new value, if it is a moment without a time zone: pages show it in that of the browser
    """

    label: str
    before: str
    after: str
    moment: datetime | None = None


class RequestCard(Struct, kw_only=True, frozen=True):
    """A request that waits for a person, with the fields that it sets."""

    request: WaitingRequest
    changes: Sequence[FieldChange] = ()


class AgentLines(NamedTuple):
    """A page of lines, the newest first. `older`: where the next page begins; empty: there is none."""

    lines: Sequence[AgentLine]
    older: str


class AgentDirectory(Protocol):
    """What a service knows of agents."""

    async def cards(self, session: Session, request: Request) -> Sequence[AgentCard]:
        """The credentials that work now, the one used last first."""
        ...

    async def lines(self, session: Session, request: Request, before: str, limit: int) -> AgentLines:
        """What agents did. `before`: where the page begins; empty: with the newest. Raises `validation_failed`."""
        ...

    async def requests(self, session: Session, request: Request) -> Sequence[RequestCard]:
        """What waits for the person, the oldest first."""
        ...

    async def values(self, session: Session, request: Request) -> Mapping[str, Any]:
        """Further values of the page, for the templates of the service."""
        ...


class AgentTemplates(NamedTuple):
    """The templates of a service for the page.

    base                 the layout of its console
    action_sentences     has the macros `action_sentence(action)`: what an agent did as a sentence, `more(action)`:
                         paragraphs below it, and `note(action)`: what follows the time in the same line
    request_sentences    has the macro `request_sentence(request)`: what an agent wants to do as a sentence, and what is
                         risked
    keys                 the section about keys
    counts               what a daily limit counts: `people` or `units`
    """

    base: str
    action_sentences: str
    request_sentences: str
    keys: str
    counts: str


class AgentsPage:
    """Answers requests for the page, and for older lines of what agents did."""

    def __init__(
        self, console: Console, directory: AgentDirectory, connection: ConnectionDetails, templates: AgentTemplates
    ) -> None:
        self._console = console
        self._directory = directory
        self._connection = connection
        self._templates = templates

    def routes(self) -> list[Route]:
        return [
            self._console.route(AGENTS, "agents", self.show),
            self._console.route(DONE, "agents_done", self.done),
        ]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show the page."""
        return await self.page(session, request)

    async def page(self, session: Session, request: Request, status: int = 200, **values: Any) -> Reply:
        """The page. `values` replace those of the service, such as after a form that was refused."""
        lines, older = await self._directory.lines(session, request, "", MAX_LINES)
        return self.render(
            session,
            request,
            "agents/agents.html",
            status,
            cards=await self._directory.cards(session, request),
            requests=await self._directory.requests(session, request),
            lines=lines,
            older=older,
            connection=self._connection,
            scripts=[COPY_SCRIPT],
            **{**await self._directory.values(session, request), **values},
        )

    async def done(self, session: Session, request: Request) -> Reply:
        """Show what agents did, the newest first."""
        before = read_query(request.query).get("before", "")
        lines, older = await self._directory.lines(session, request, before, PAGE_LINES)
        return self.render(session, request, "agents/agents_done.html", lines=lines, older=older, is_first=not before)

    def render(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        """A page below "Agents", named by its path among all templates."""
        return self._console.signed_in.page(
            session,
            request,
            template,
            status,
            here=AGENTS,
            base=self._templates.base,
            action_sentences=self._templates.action_sentences,
            request_sentences=self._templates.request_sentences,
            key_section=self._templates.keys,
            counts=self._templates.counts,
            **values,
        )

    def moved(self, path: str, name: str) -> Route:
        """The route of an address that this page had before: it leads to the page."""

        async def answer(_: Session, request: Request) -> Reply:
            return self._console.redirect(request, AGENTS)

        return self._console.route(path, name, answer)


def connection_page_route(
    site: Site,
    limits: Limits,
    *,
    base_url: str,
    connection: ConnectionDetails,
    abilities: Sequence[str],
    examples: Sequence[str],
    manual: str,
    reference: str = "",
) -> Route:
    """The route of the public page that says how agents connect.

    abilities    what a person can allow an agent, as English sentences
    examples     what a person says to an agent in a chat, as English sentences
    manual       the path of the text for agents
    reference    the path of the reference; empty: there is none
    """
    return constant_page(
        site,
        "/agents",
        "agents/how_agents_connect.html",
        limits,
        "how_agents_connect",
        base_url=base_url,
        connection=connection,
        abilities=abilities,
        examples=examples,
        manual=manual,
        reference=reference,
    )
