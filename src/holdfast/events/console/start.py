"""The first pages of an account: whose are the keys that were made before, and becoming an organizer."""

from collections.abc import Mapping

from starlette.routing import BaseRoute

from holdfast.accounts.entrance import local, returning
from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import BEFORE, HOME, START, Console
from holdfast.events.organizers import accounts
from holdfast.events.organizers.accounts import BecomeOrganizer, Before, LookBefore, ProveAccount
from holdfast.kit.caller import NOBODY
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.pages.refusal import NOT_REFUSED, Refusal, tried
from holdfast.kit.runner import Runner

BECOME = Operation("become_organizer", None, single(accounts.become))
LOOK_BEFORE = Operation("look_at_keys_before", None, read(accounts.look_before))
PROVE = Operation("prove_account", None, single(accounts.prove))
OPERATIONS = (BECOME, LOOK_BEFORE, PROVE)
"""They have no routes and no tools of their own."""


class StartPages:
    """Answers requests of those who are not in the console yet."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._become, self._look_before, self._prove = runner[BECOME], runner[LOOK_BEFORE], runner[PROVE]

    def routes(self) -> list[BaseRoute]:
        return [
            self._console.door.route(BEFORE, "console_before", self.before, "POST", at_once=True),
            self._console.door.route(START, "console_start", self.start, "POST", at_once=True),
        ]

    async def before(self, session: Session, request: Request) -> Reply:
        """Ask whose the keys and the password are that were made before the address was proved."""
        if session.account.is_proved:
            return self._console.to(request, HOME)
        if request.method == "POST":
            fields = await self._console.door.read(session, request)
            keep = fields.get("whose") == "mine"
            await self._prove(NOBODY, ProveAccount(account_id=session.account_id, session_id=session.id, keep=keep))
            return self._console.to(request, local(fields.get("return_to", "")) or HOME)
        found: Before = await self._look_before(NOBODY, LookBefore(account_id=session.account_id))
        return self._console.door.page(
            session, request, "console/before.html", before=found, return_to=_return_to(request)
        )

    async def start(self, session: Session, request: Request) -> Reply:
        """Make an organizer of the account."""
        if session.account.tenant_id is not None:
            return self._console.to(request, HOME)
        if request.method != "POST":
            return self._form(session, request, {"return_to": _return_to(request)})
        fields = await self._console.door.read(session, request)
        named = {name: fields.get(name) or None for name in ("name", "slug")}
        done = await tried(
            lambda: self._become(NOBODY, check(BecomeOrganizer, {**named, "account_id": session.account_id}))
        )
        if isinstance(done, Refusal):
            return self._form(session, request, fields, done)
        return self._console.to(request, local(fields.get("return_to", "")) or HOME)

    def _form(
        self, session: Session, request: Request, values: Mapping[str, str], refusal: Refusal = NOT_REFUSED
    ) -> Reply:
        query = returning(local(values.get("return_to", ""))).encode()
        return self._console.door.page(
            session,
            request,
            "console/start.html",
            refusal.status,
            query=query,
            values=values,
            errors=refusal.errors,
        )


def _return_to(request: Request) -> str:
    """Where somebody wanted to go who was led here first."""
    return local(read_query(request.query).get("return_to", ""))
