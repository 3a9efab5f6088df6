"""The first pages of an account: who made its earlier data, and the form that makes it an organizer."""

import re
import unicodedata
from collections.abc import Mapping
from functools import partial

from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import local_path, return_query
from holdfast.events import ownership
from holdfast.events.console.frame import BEFORE, HOME, START, Console
from holdfast.events.organizers import accounts
from holdfast.events.organizers.accounts import BecomeOrganizer
from holdfast.events.ownership import GetUnprovedAccount, ProveAccount, UnprovedAccount
from holdfast.kit.contract.command import check
from holdfast.kit.contract.messages import message
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import NOT_REFUSED, FormRefusal, try_form

BECOME_ORGANIZER = Operation("become_organizer", None, single(accounts.become))
READ_PREVIOUS = Operation("get_unproved_account", None, read(ownership.get_unproved_account))
PROVE = Operation("prove_account", None, single(ownership.prove))
OPERATIONS = (BECOME_ORGANIZER, READ_PREVIOUS, PROVE)
"""Operations of the console alone: they have no routes of the API and no tools."""

INSTRUCTIONS = {
    "name": message("Enter the name that people see, such as Ada Events."),
    "slug": message("Enter 3 to 100 lowercase letters, digits and dashes, such as ada-events."),
}
"""What people enter in the form of a new organizer, by field."""


MAX_PROPOSED_SLUGS = 5
"""How many addresses are tried for an organizer who enters only a name."""

MIN_SLUG_CHARACTERS = 3
MAX_SLUG_CHARACTERS = 90
"""The lengths of an address that is made from a name: it is valid, and there is room for a number."""

_GERMAN_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


class StartPages:
    """Answers requests of accounts that cannot use the console yet."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._become, self._look_before, self._prove = (
            runner.run_of(BECOME_ORGANIZER),
            runner.run_of(READ_PREVIOUS),
            runner.run_of(PROVE),
        )

    def routes(self) -> list[Route]:
        return [
            self._console.signed_in.route(BEFORE, "console_before", self.before, "POST", skips_first_page=True),
            self._console.signed_in.route(START, "console_start", self.start, "POST", skips_first_page=True),
        ]

    async def before(self, session: Session, request: Request) -> Reply:
        """Ask who made the data from before the address was proved: the owner of the address or a stranger.

        Only the owner of the address is asked. An account that signed in with a password may belong to the stranger.
        """
        if session.account.is_proved or not session.is_proved:
            return self._console.redirect(request, HOME)
        if request.method == "POST":
            fields = await self._console.signed_in.read(session, request)
            keep = fields.get("whose") == "mine"
            await self._prove(
                session.person, ProveAccount(account_id=session.account_id, session_id=session.id, keep=keep)
            )
            return self._console.redirect(request, local_path(fields.get("return_to", "")) or HOME)
        previous: UnprovedAccount = await self._look_before(
            session.person, GetUnprovedAccount(account_id=session.account_id)
        )
        return self._console.signed_in.page(
            session, request, "console/account/whose_account.html", before=previous, return_to=_return_to(request)
        )

    async def start(self, session: Session, request: Request) -> Reply:
        """Make the account an organizer."""
        if session.account.tenant_id is not None:
            return self._console.redirect(request, HOME)
        if request.method != "POST":
            return self._form(session, request, {"return_to": _return_to(request)})
        fields = await self._console.signed_in.read(session, request)
        name, typed_slug = fields.get("name") or None, fields.get("slug") or None
        slugs = [typed_slug] if typed_slug or not name else slugs_of(name)
        refusal = NOT_REFUSED
        for slug in slugs:
            named = {"name": name, "slug": slug, "account_id": session.account_id}
            result = await try_form(
                partial(self._make_organizer, session, named),
                instructions=INSTRUCTIONS,
            )
            refusal = result if isinstance(result, FormRefusal) else NOT_REFUSED
            if "slug" not in refusal.errors:
                break
        if not name and not typed_slug:
            # Without a name there is none to make the address from; the address itself is optional.
            refusal = refusal._replace(errors={"name": refusal.errors["name"]})
        if refusal.errors:
            return self._form(session, request, {**fields, "slug": typed_slug or slugs[0] or ""}, refusal)
        return self._console.redirect(request, local_path(fields.get("return_to", "")) or HOME)

    async def _make_organizer(self, session: Session, named: Mapping[str, object]) -> None:
        await self._become(session.person, check(BecomeOrganizer, named))

    def _form(
        self, session: Session, request: Request, values: Mapping[str, str], refusal: FormRefusal = NOT_REFUSED
    ) -> Reply:
        query = return_query(local_path(values.get("return_to", ""))).encode()
        return self._console.signed_in.page(
            session,
            request,
            "console/account/start.html",
            refusal.status,
            query=query,
            values=values,
            errors=refusal.errors,
        )


def slugs_of(name: str) -> list[str | None]:
    """Addresses for the page of an organizer who enters only a name: `Käthe's Club` has `kaethes-club`.

    The only one is too short, or None, if the name has too few letters that an address can have.
    """
    text = unicodedata.normalize("NFKD", name.lower().translate(_GERMAN_LETTERS)).encode("ascii", "ignore").decode()
    slug = re.sub("[^a-z0-9]+", "-", text.replace("'", "")).strip("-")[:MAX_SLUG_CHARACTERS].rstrip("-")
    if len(slug) < MIN_SLUG_CHARACTERS:
        return [slug or None]
    return [slug, *(f"{slug}-{number}" for number in range(2, MAX_PROPOSED_SLUGS + 1))]


def _return_to(request: Request) -> str:
    """The path that the visitor requested before the redirect to this page."""
    return local_path(read_query(request.query).get("return_to", ""))
