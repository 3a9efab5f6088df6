"""The registrations of one event as a CSV file: all that the list shows, in order of arrival."""

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.registrations import SEARCH, list_path, searched
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.search import MOST, Head, Part, SearchRegistrations, Shown
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.cells import as_csv
from holdfast.kit.downloads import Download
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.runner import Run, Runner

MARK = "\ufeff"
"""At its beginning it tells spreadsheet programs that a file is UTF-8."""


class RegistrationsFile:
    """Answers requests for the registrations of an event as a file."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: Run = runner[SEARCH]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(f"{list_path('{event_id}')}.csv", "registrations_csv", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """The file. Raises what the list raises, before any of it is sent."""
        asked = searched(request, read_query(request.query))
        command = msgspec.structs.replace(asked, newest_first=False, limit=MOST)
        first: Part = await self._search(organizer(session), command)
        return Download(
            200,
            media_type=b"text/csv; charset=utf-8",
            filename=f"registrations-{command.event_id}.csv",
            parts=self._parts(organizer(session), command, first, language_of(request)),
        )

    async def _parts(
        self, caller: Caller, command: SearchRegistrations, part: Part, language: Language
    ) -> AsyncIterator[bytes]:
        """The file, a part at a time. Who is registered meanwhile may be in it."""
        yield f"{MARK}{as_csv([_columns(language)])}".encode()
        while True:
            yield as_csv(_row(part.event, each, language) for each in part.registrations).encode()
            if part.more is None:
                return
            part = await self._search(caller, msgspec.structs.replace(command, after=part.more))


def _columns(language: Language) -> Sequence[str]:
    _ = SITE.texts(language).gettext
    return (
        *(_("E-mail address"), _("Name"), _("State"), _("Place on the waiting list"), _("Reason")),
        *(_("Amount paid"), _("Currency"), _("Received (UTC)"), _("Id"), _("In since (UTC)")),
    )


def _row(event: Head, registration: Shown, language: Language) -> Sequence[Any]:
    _ = SITE.texts(language).gettext
    states = {
        "registered": _("Seat"),
        "held": _("Seat, not paid yet"),
        "waitlisted": _("Waiting list"),
        "pending": _("Pending"),
        "rejected": _("No place"),
    }
    return (
        registration.email,
        registration.name,
        states[registration.status],
        registration.place or None,
        registration.reason,
        Decimal(registration.amount_paid).scaleb(-digits(event.currency)),
        event.currency,
        registration.received_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        registration.user_id,
        registration.entered_at and registration.entered_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
