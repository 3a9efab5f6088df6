"""The pages of API keys: the list, a new key, and the end of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.keys import operations
from holdfast.events.keys.model import ApiKey, CreateKey, KeyUse, ListKeys, RevokeKey
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.modes import read
from holdfast.kit.operation import Operation
from holdfast.kit.pages import once
from holdfast.kit.pages.own import named, on_own
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.problems import NOT_FOUND
from holdfast.kit.runner import Runner

KEYS = "/console/keys"

USES = Operation("list_key_uses", None, read(operations.uses))
OPERATIONS = (USES,)
"""They have no routes and no tools of their own."""


class KeysPages:
    """Answers requests for the organizer's API keys."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list, self._create = console.run["list_api_keys"], console.run["create_api_key"]
        self._revoke = on_own(console.run["revoke_api_key"])
        self._uses = runner[USES]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(KEYS, "keys", self.list),
            self._console.route(f"{KEYS}/new", "new_key", self.create, "POST", limit="keys"),
            self._console.route(f"{KEYS}/{{id}}/revoke", "revoke_key", self.revoke, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the keys, with a form for another one."""
        return await self._listed(session, request, {})

    async def create(self, session: Session, request: Request) -> Reply:
        """Make a key, and show it this once."""
        if request.method != "POST":
            return self._console.to(request, KEYS)
        fields = await self._console.door.read(session, request)
        values = {"name": fields.get("name") or None}
        made = await tried(
            lambda: once.run(self._create, organizer(session), check(CreateKey, values), fields, ApiKey), QUOTA_EXCEEDED
        )
        if isinstance(made, Refusal):
            return await self._listed(session, request, fields, made)
        return self._page(session, request, "key_made.html", made=made)

    async def revoke(self, session: Session, request: Request) -> Reply:
        """Ask whether a key is to end, and end it."""
        command = named(RevokeKey, request)
        if request.method == "POST":
            await self._console.door.read(session, request)
            await self._revoke(organizer(session), command)
            return self._console.to(request, KEYS)
        for key in await self._keys(session):
            if key.id == command.id:
                return self._page(session, request, "key_revoke.html", key=key)
        raise NOT_FOUND()

    async def _keys(self, session: Session) -> Sequence[ApiKey]:
        return await self._list(organizer(session), ListKeys())

    async def _listed(
        self,
        session: Session,
        request: Request,
        values: Mapping[str, str],
        refusal: Refusal = NOT_REFUSED,
    ) -> Reply:
        keys = await self._keys(session)
        uses: Sequence[KeyUse] = await self._uses(organizer(session), ListKeys())
        return self._page(
            session,
            request,
            "keys.html",
            refusal.status,
            keys=keys,
            used={each.id: each.used_at for each in uses},
            values=values,
            errors=refusal.errors,
            is_full=refusal.code == QUOTA_EXCEEDED.code,
            once=once.new(),
        )

    def _page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        return self._console.page(session, request, template, status, here=KEYS, **values)
