"""The page of the registrations of one event: a list that refreshes itself, with a search, filters and sorting, and as
a CSV file.

The list is read in order of arrival. For another order all of it is read and sorted here, up to a number.

The separator and the decimal sign are those of the language.
"""

import datetime as dt
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from holdfast.accounts.sessions import Session
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.paths import id_of
from holdfast.events.processor.currencies import digits
from holdfast.events.registrations import search
from holdfast.events.registrations.search import (
    MAX_PAGE_SIZE,
    RegistrationSearchResult,
    RegistrationView,
    SearchedEvent,
    SearchRegistrations,
)
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import check
from holdfast.kit.contract.csv_cells import BYTE_ORDER_MARK, as_csv
from holdfast.kit.http.answers import Download
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.operation import Operation, single
from holdfast.kit.operations.runner import Runner, RunOperation
from holdfast.kit.pages.language import Language, language_of

MAX_SORTED = 2_000
"""The most registrations that are sorted by a column other than the time of their arrival."""

_STATUSES = ("registered", "held", "waitlisted", "pending", "in_draw", "rejected")
_NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)

KEYS: Mapping[str, Callable[[RegistrationView], Any]] = {
    "address": lambda row: (row.email is None, row.email),
    "name": lambda row: (row.name is None, (row.name or "").casefold()),
    "state": lambda row: (_STATUSES.index(row.status), row.position),
    "paid": lambda row: (row.paid_by_card or 0) if row.amount_due is not None else row.amount_paid,
    "in": lambda row: row.entered_at or _NEVER,
    "received": lambda row: row.received_at,
}
"""The columns, with the value of a registration in each."""

CHOOSE_SCRIPT = "console/people/choose_all.js"
"""The script of the box that ticks all boxes of a page."""

SIDE_SCRIPT = "console/people/person_side.js"
"""The script that opens a person of the list at its side."""

NOTICES = ("removed", "several_removed", "several_moved", "several_in", "none_chosen")

REGISTRATIONS_PER_PAGE = 40
"""The registrations on a page. They can all be chosen: a query has at most 50 parameters."""


class Sort(NamedTuple):
    """A column, and whether its greatest value comes first."""

    key: str
    is_descending: bool


def read_sort(text: str) -> Sort | None:
    """The order that a query names, such as `name`, or `-name` for the reverse. None if it names none."""
    key = text.removeprefix("-")
    return Sort(key, text.startswith("-")) if key in KEYS else None


def read_offset(text: str) -> int:
    """The number of registrations before a page of a sorted list; 0 if the query names none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def sort_rows(rows: Sequence[RegistrationView], by: Sort) -> list[RegistrationView]:
    """The registrations in an order. Those with the same value stay in theirs."""
    return sorted(rows, key=KEYS[by.key], reverse=by.is_descending)


SEARCH = Operation("search_registrations", None, single(search.search))
OPERATIONS = (SEARCH,)
"""An operation of the console alone: it has no route of the API and no tool."""


def list_path(event_id: int | str) -> str:
    """The path of the registrations of an event."""
    return f"{HOME}/events/{event_id}/registrations"


def adding_path(event_id: int | str) -> str:
    """The path of the form that registers a person for an event."""
    return f"{HOME}/events/{event_id}/add-registration"


def bulk_changes_path(event_id: int | str) -> str:
    """The path of what is done with several registrations of an event."""
    return f"{HOME}/events/{event_id}/several-registrations"


class RegistrationsPage:
    """Answers requests for the list of the registrations of an event."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: RunOperation = runner.run_of(SEARCH)

    def routes(self) -> list[Route]:
        return [
            self._console.route(list_path("{event_id}"), "registrations", self.list),
            *SITE.assets(CHOOSE_SCRIPT, SIDE_SCRIPT),
        ]

    async def list(self, session: Session, request: Request) -> Reply:
        """List registrations, newest first; the waiting list in its order."""
        query = read_query(request.query)
        command = search_command(request, query)
        sort = read_sort(query.get("sort", ""))
        if sort and sort.key == "received":
            command = msgspec.structs.replace(command, newest_first=sort.is_descending)
        is_sorted = sort is not None and sort.key != "received"
        page = msgspec.structs.replace(command, limit=REGISTRATIONS_PER_PAGE)
        to_sort = msgspec.structs.replace(command, limit=MAX_SORTED, after=None)
        result: RegistrationSearchResult = await self._search(organizer(session), to_sort if is_sorted else page)
        is_too_many = is_sorted and result.next_key is not None
        if is_too_many:
            result = await self._search(organizer(session), page)
        rows, more = result.registrations, result.next_key and {"after": result.next_key}
        if sort and is_sorted and not is_too_many:
            offset = read_offset(query.get("offset", ""))
            rows = sort_rows(rows, sort)
            more = (
                {"offset": str(offset + REGISTRATIONS_PER_PAGE)}
                if len(rows) > offset + REGISTRATIONS_PER_PAGE
                else None
            )
            rows = rows[offset : offset + REGISTRATIONS_PER_PAGE]
        filters = query_of(command)
        sorted_by = {"sort": query["sort"]} if sort else {}
        return self._console.page(
            session,
            request,
            "people/registrations.html",
            event=result.event,
            registrations=rows,
            filters=command,
            digits=digits,
            path=list_path(result.event.id),
            adding=adding_path(result.event.id),
            several=bulk_changes_path(result.event.id),
            filter_query=urlencode(filters),
            here=urlencode({**filters, **sorted_by}),
            more=urlencode({**filters, **sorted_by, **more}) if more else None,
            is_first=not command.after and not query.get("offset"),
            sort=sort,
            is_too_many=is_too_many,
            count=query.get("count", ""),
            notice=query.get("done") if query.get("done") in NOTICES else None,
        )


def search_command(request: Request, query: Mapping[str, str]) -> SearchRegistrations:
    """The search that the path and the query of a page ask for. Raises `not_found` and `validation_failed`."""
    fields: dict[str, Any] = {
        "event_id": id_of(request.fields["event_id"]),
        "status": query.get("state") or None,
        "text": query.get("q", "").strip() or None,
        "after": query.get("after") or None,
    }
    command = check(SearchRegistrations, fields)
    return msgspec.structs.replace(command, newest_first=command.status != "waitlisted")


def query_of(command: SearchRegistrations) -> dict[str, str]:
    """The search and the filter as query parameters for the address of another page."""
    return {name: value for name, value in (("state", command.status), ("q", command.text)) if value}


class RegistrationsFile:
    """Answers requests for the CSV file of registrations."""

    def __init__(self, console: Console, runner: Runner) -> None:
        self._console = console
        self._search: RunOperation = runner.run_of(SEARCH)

    def routes(self) -> list[Route]:
        return [self._console.route(f"{list_path('{event_id}')}.csv", "registrations_csv", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """The file. Raises the same problems as the list, before the first byte is sent."""
        search = search_command(request, read_query(request.query))
        command = msgspec.structs.replace(search, newest_first=False, limit=MAX_PAGE_SIZE)
        first_result: RegistrationSearchResult = await self._search(organizer(session), command)
        return Download(
            200,
            media_type=b"text/csv; charset=utf-8",
            filename=f"registrations-{command.event_id}.csv",
            parts=self._parts(organizer(session), command, first_result, language_of(request)),
        )

    async def _parts(
        self, caller: Caller, command: SearchRegistrations, result: RegistrationSearchResult, language: Language
    ) -> AsyncIterator[bytes]:
        """The parts of the file. A person who registers during the download may be in it."""
        format = language.csv_format
        yield f"{BYTE_ORDER_MARK}{as_csv([_columns(language)], format)}".encode()
        while True:
            rows = (_row(result.event, registration, language) for registration in result.registrations)
            yield as_csv(rows, format).encode()
            if result.next_key is None:
                return
            result = await self._search(caller, msgspec.structs.replace(command, after=result.next_key))


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
        registration.position or None,
        registration.reason,
        Decimal(amount).scaleb(-digits(currency)),
        currency,
        registration.received_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        registration.user_id,
        registration.entered_at and registration.entered_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
