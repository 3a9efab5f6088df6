"""The pages of API keys: the list, a new key, and the end of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console import once
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.own import named, on_own
from holdfast.events.keys import operations
from holdfast.events.keys.model import ApiKey, CreateKey, KeyUse, ListKeys, RevokeKey
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request
from holdfast.kit.modes import read
from holdfast.kit.operation import Operation
from holdfast.kit.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.runner import Runner

KEYS = "/console/keys"

USES = Operation("list_key_uses", None, read(operations.uses))
OPERATIONS = (USES,)
"""They have no routes and no tools of their own."""


class KeysPages:
    """Answers requests for the organizer's API keys."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._list, self._create, self._revoke = (
            console.run[name] for name in ("list_api_keys", "create_api_key", "revoke_api_key")
        )
        self._uses = runner[USES]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.route(KEYS, "keys", self.list),
            self._console.route(f"{KEYS}/new", "new_key", self.create, "POST", limit="keys"),
            self._console.route(f"{KEYS}/{{id}}/revoke", "revoke_key", self.revoke, "POST"),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the keys, with a form for another one."""
        return await self._listed(session, request, {}, {})

    async def create(self, session: Session, request: Request) -> Reply:
        """Make a key, and show it this once."""
        if request.method != "POST":
            return self._console.to(request, KEYS)
        fields = await self._console.door.read(session, request)
        try:
            command = check(CreateKey, {"name": fields.get("name") or None})
            made = await once.run(self._create, organizer(session), command, fields, ApiKey)
        except Problem as problem:
            if problem.type is QUOTA_EXCEEDED:
                return await self._listed(session, request, fields, {}, problem.status, is_full=True)
            if problem.type is not VALIDATION_FAILED:
                raise
            return await self._listed(session, request, fields, problem.extra["errors"], 422)
        return self._page(session, request, "key_made.html", made=made)

    async def revoke(self, session: Session, request: Request) -> Reply:
        """Ask whether a key is to end, and end it."""
        command = named(RevokeKey, request)
        if request.method == "POST":
            await self._console.door.read(session, request)
            await on_own(self._revoke, organizer(session), command)
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
        errors: Mapping[str, Sequence[str]],
        status: int = 200,
        *,
        is_full: bool = False,
    ) -> Reply:
        keys = await self._keys(session)
        uses: Sequence[KeyUse] = await self._uses(organizer(session), ListKeys())
        return self._page(
            session,
            request,
            "keys.html",
            status,
            keys=keys,
            used={each.id: each.used_at for each in uses},
            values=values,
            errors=errors,
            is_full=is_full,
            once=once.new(),
        )

    def _page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        return self._console.page(session, request, template, status, here=KEYS, **values)
