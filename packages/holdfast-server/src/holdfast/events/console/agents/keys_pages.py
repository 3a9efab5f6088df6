"""The pages of API keys: create one, revoke one. The page "Agents" lists them."""

from collections.abc import Sequence
from typing import Any

from holdfast.accounts.agents.agents_page import AGENTS, COPY_SCRIPT, AgentsPage
from holdfast.accounts.sessions import Session
from holdfast.events.console.agents.agents_pages import LIST_USES
from holdfast.events.console.frame import Console, organizer
from holdfast.events.keys.model import ApiKey, CreateKey, KeyUse, ListKeys, RevokeKey
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import FormRefusal, command_in_path, hide_forbidden, try_form

KEYS = f"{AGENTS}/keys"

INSTRUCTIONS = {"name": message("Enter a name, such as Ticket shop.")}
"""What people enter in the form of a new key, by field."""


class KeysPages:
    """Answers requests for the pages of the organizer's API keys."""

    def __init__(self, console: Console, runner: Runner, agents: AgentsPage) -> None:
        self._console = console
        self._agents = agents
        self._list, self._create = console.run["list_api_keys"], console.run["create_api_key"]
        self._revoke = hide_forbidden(console.run["revoke_api_key"])
        self._list_uses = runner.run_of(LIST_USES)

    def routes(self) -> list[Route]:
        return [
            self._agents.moved("/console/keys", "keys"),
            self._console.route(f"{KEYS}/new", "new_key", self.create, "POST", limit="keys"),
            self._console.route(f"{KEYS}/{{id}}/revoke", "revoke_key", self.revoke, "POST"),
        ]

    async def create(self, session: Session, request: Request) -> Reply:
        """Create a key, and show it once."""
        if request.method != "POST":
            return self._console.redirect(request, AGENTS)
        fields = await self._console.signed_in.read(session, request)
        values = {"name": fields.get("name") or None}
        key = await try_form(
            lambda: forms.run_once(self._create, organizer(session), check(CreateKey, values), fields, ApiKey),
            QUOTA_EXCEEDED,
            instructions=INSTRUCTIONS,
        )
        if isinstance(key, FormRefusal):
            return await self._agents.page(
                session,
                request,
                key.status,
                values=fields,
                errors=key.errors,
                is_full=key.code == QUOTA_EXCEEDED.code,
            )
        return self._page(session, request, "agents/key_made.html", made=key, scripts=[COPY_SCRIPT])

    async def revoke(self, session: Session, request: Request) -> Reply:
        """Show the question whether to revoke a key; with POST revoke it."""
        command = command_in_path(RevokeKey, request)
        if request.method == "POST":
            await self._console.signed_in.read(session, request)
            await self._revoke(organizer(session), command)
            return self._console.redirect(request, AGENTS)
        keys: Sequence[ApiKey] = await self._list(organizer(session), ListKeys())
        uses: Sequence[KeyUse] = await self._list_uses(organizer(session), ListKeys())
        used_at = {use.id: use.used_at for use in uses}
        for key in keys:
            if key.id == command.id:
                return self._page(session, request, "agents/key_revoke.html", key=key, used_at=used_at.get(key.id))
        raise NOT_FOUND()

    def _page(self, session: Session, request: Request, template: str, **values: Any) -> Reply:
        return self._console.page(session, request, template, here=AGENTS, **values)
