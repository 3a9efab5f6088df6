"""The registrations of one event as a CSV file with all columns of the list, in order of arrival.

The separator and the decimal sign are those of the language.
"""

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import Console, organizer
from holdfast.events.console.people.registrations import SEARCH, list_path, search_command
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations.search import (
    MAX_PAGE_SIZE,
    RegistrationsPart,
    RegistrationView,
    SearchedEvent,
    SearchRegistrations,
)
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.csv_cells import BYTE_ORDER_MARK, as_csv
from holdfast.kit.http.answers import Download
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.running.runner import Run, Runner


class RegistrationsFile:
    """Answers requests for the CSV file of registrations."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: Run = runner[SEARCH]

    def routes(self) -> list[Route]:
        return [self._console.route(f"{list_path('{event_id}')}.csv", "registrations_csv", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """The file. Raises the same problems as the list, before the first byte is sent."""
        search = search_command(request, read_query(request.query))
        command = msgspec.structs.replace(search, newest_first=False, limit=MAX_PAGE_SIZE)
        first: RegistrationsPart = await self._search(organizer(session), command)
        return Download(
            200,
            media_type=b"text/csv; charset=utf-8",
            filename=f"registrations-{command.event_id}.csv",
            parts=self._parts(organizer(session), command, first, language_of(request)),
        )

    async def _parts(
        self, caller: Caller, command: SearchRegistrations, part: RegistrationsPart, language: Language
    ) -> AsyncIterator[bytes]:
        """The parts of the file. A person who registers during the download may be in it."""
        format = language.csv_format
        yield f"{BYTE_ORDER_MARK}{as_csv([_columns(language)], format)}".encode()
        while True:
            rows = (_row(part.event, registration, language) for registration in part.registrations)
            yield as_csv(rows, format).encode()
            if part.more is None:
                return
            part = await self._search(caller, msgspec.structs.replace(command, after=part.more))


def _columns(language: Language) -> Sequence[str]:
    _ = SITE.texts(language).gettext
    return (
        *(_("E-mail address"), _("Name"), _("Status"), _("Place on the waiting list"), _("Reason")),
        *(_("Amount paid"), _("Currency"), _("Received (UTC)"), _("Id"), _("In since (UTC)")),
    )


def _row(event: SearchedEvent, registration: RegistrationView, language: Language) -> Sequence[Any]:
    _ = SITE.texts(language).gettext
    states = {
        "registered": _("Seat"),
        "held": _("Seat, not paid yet"),
        "waitlisted": _("Waiting list"),
        "pending": _("Pending"),
        "in_draw": _("In the draw"),
        "rejected": _("No seat"),
    }
    amount, currency = registration.paid_by_card, registration.card_currency
    if amount is None or currency is None:
        amount, currency = registration.amount_paid, event.currency
    return (
        registration.email,
        registration.name,
        states[registration.status],
        registration.place or None,
        registration.reason,
        Decimal(amount).scaleb(-digits(currency)),
        currency,
        registration.received_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        registration.user_id,
        registration.entered_at and registration.entered_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
