"""The pages of API keys: list them, create one, revoke one."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accounts.agent_limits import ListLimits
from holdfast.accounts.sessions import Session
from holdfast.events.console.events.share import COPY_SCRIPT
from holdfast.events.console.frame import Console, organizer
from holdfast.events.keys import operations
from holdfast.events.keys.model import ApiKey, CreateKey, KeyUse, ListKeys, RevokeKey
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.pages import forms
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, command_in_path, hide_forbidden, try_form
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import read
from holdfast.kit.running.runner import Runner

KEYS = "/console/keys"

LIST_USES = Operation("list_key_uses", None, read(operations.list_uses))
OPERATIONS = (LIST_USES,)
"""They have no routes and no tools of their own."""

INSTRUCTIONS = {"name": message("Enter what the key is for, such as Ticket shop.")}
"""What people enter in the form of a new key, by field."""


class KeysPages:
    """Answers requests for the pages of the organizer's API keys."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list, self._create = console.run["list_api_keys"], console.run["create_api_key"]
        self._revoke = hide_forbidden(console.run["revoke_api_key"])
        self._uses, self._limits = runner[LIST_USES], runner[operations.LIMITS.list]

    def routes(self) -> list[Route]:
        return [
            self._console.route(KEYS, "keys", self.list),
            self._console.route(f"{KEYS}/new", "new_key", self.create, "POST", limit="keys"),
            self._console.route(f"{KEYS}/{{id}}/revoke", "revoke_key", self.revoke, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the keys, with the form for a new one."""
        return await self._list_page(session, request, {})

    async def create(self, session: Session, request: Request) -> Reply:
        """Create a key, and show it once."""
        if request.method != "POST":
            return self._console.to(request, KEYS)
        fields = await self._console.signed_in.read(session, request)
        values = {"name": fields.get("name") or None}
        key = await try_form(
            lambda: forms.run_once(self._create, organizer(session), check(CreateKey, values), fields, ApiKey),
            QUOTA_EXCEEDED,
            instructions=INSTRUCTIONS,
        )
        if isinstance(key, FormRefusal):
            return await self._list_page(session, request, fields, key)
        return self._page(session, request, "account/key_made.html", made=key, scripts=[COPY_SCRIPT])

    async def revoke(self, session: Session, request: Request) -> Reply:
        """Show the question whether to revoke a key; with POST revoke it."""
        command = command_in_path(RevokeKey, request)
        if request.method == "POST":
            await self._console.signed_in.read(session, request)
            await self._revoke(organizer(session), command)
            return self._console.to(request, KEYS)
        for key in await self._keys(session):
            if key.id == command.id:
                return self._page(session, request, "account/key_revoke.html", key=key)
        raise NOT_FOUND()

    async def _keys(self, session: Session) -> Sequence[ApiKey]:
        return await self._list(organizer(session), ListKeys())

    async def _list_page(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        refusal: FormRefusal = NOT_REFUSED,
    ) -> Reply:
        keys = await self._keys(session)
        uses: Sequence[KeyUse] = await self._uses(organizer(session), ListKeys())
        return self._page(
            session,
            request,
            "account/keys.html",
            refusal.status,
            keys=keys,
            used={use.id: use.used_at for use in uses},
            limits={limit.key_id: limit for limit in await self._limits(organizer(session), ListLimits())},
            values=values,
            errors=refusal.errors,
            is_full=refusal.code == QUOTA_EXCEEDED.code,
            once=forms.new_token(),
        )

    def _page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        return self._console.page(session, request, template, status, here=KEYS, **values)
