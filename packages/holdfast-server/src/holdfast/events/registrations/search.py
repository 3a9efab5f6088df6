"""The registrations of one event for the organizer's pages: of every status, searched, filtered, one part at a time.

A part ends at a registration, and the next one begins there. So the last part of a million costs as much as the first.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, LiteralString

import msgspec
from msgspec import Meta, Struct

from holdfast.accounts.addresses import canonical
from holdfast.events.paths import EventId
from holdfast.events.registrations import substring_search
from holdfast.events.registrations.model import PERSON_NAME, RegistrationStatus
from holdfast.events.registrations.refusals import REFUSALS
from holdfast.events.registrations.sql import in_order, number_waiting
from holdfast.events.registrations.substring_search import TEXT_CONDITION
from holdfast.events.resources import Tx
from holdfast.events.users.model import OWNS_EMAIL, PublicId
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses

ListFilter = Literal["unpaid", "absent"]
"""unpaid: people with a seat who have not paid for it; absent: people with a seat who have not entered"""

MAX_FILTERED_ROWS = 2_000
"""Registrations that are read for a part with a filter. So a part may be short, or empty, and still not be the last."""

STATUS_CONDITIONS: Mapping[str | None, LiteralString] = {
    "registered": "event_id = %(event_id)s and status = 'registered'",
    "held": "event_id = %(event_id)s and status = 'held'",
    "waitlisted": "event_id = %(event_id)s and status = 'waitlisted'",
    "pending": "event_id = %(event_id)s and status = 'pending'",
    "in_draw": "event_id = %(event_id)s and status = 'in_draw'",
    "rejected": "event_id = %(event_id)s and status = 'rejected'",
}
"""The index of an event has the rows of each condition in order."""

FILTERS: Mapping[str | None, tuple[Sequence[str], LiteralString]] = {
    "unpaid": (
        ("registered", "held"),
        """
        status in ('registered', 'held') and (select pricing_mode from events where id = %(event_id)s) <> 'free'
        and case when amount_due is null then amount_paid = 0
                 else not exists (select from payments
                                   where event_id = registrations.event_id and user_id = registrations.user_id
                                     and arrival = registrations.arrival and state = 'paid') end
        """,
    ),
    "absent": (
        ("registered",),
        """
        status = 'registered' and not exists (select from check_in_scans
                                                where event_id = %(event_id)s and user_id = registrations.user_id
                                                  and is_entry)
        """,
    ),
}
"""The statuses of each filter, and its condition on a row of `registrations`."""


def condition(status_filter: str | None) -> LiteralString:
    """SQL for the condition of a filter on a row of `registrations`; `true` for a status."""
    return FILTERS[status_filter][1] if status_filter in FILTERS else "true"


def sources(status_filter: str | None, after: LiteralString) -> Sequence[LiteralString]:
    """SQL for the conditions of the statuses that have the registrations of a status, of a filter, or all (None).

    after    a further condition of each; it may be empty
    """
    statuses = (
        FILTERS[status_filter][0]
        if status_filter in FILTERS
        else [status_filter]
        if status_filter
        else STATUS_CONDITIONS
    )
    return [f"{of_status} {after}" for status, of_status in STATUS_CONDITIONS.items() if status in statuses]


MAX_PAGE_SIZE = 5_000
"""The most registrations of one part."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class SearchRegistrations(Command):
    """Asks for a part of the registrations of an event.

    status      a status, or a filter
    text        a text that the address or the name contains
    user_ids    only the registrations of these people
    after       the `key` of the registration after which the part begins
    """

    event_id: EventId
    status: RegistrationStatus | ListFilter | None = None
    text: Annotated[str, Meta(max_length=254)] | None = None
    user_id: PublicId | None = None
    user_ids: Annotated[list[PublicId], Meta(max_length=50)] | None = None
    newest_first: bool = True
    after: Annotated[str, Meta(pattern=r"^[0-9]{1,16}-[0-9]{1,18}$(?!\n)")] | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE)] = 50


class SearchedEvent(Struct, frozen=True):
    """The event that the registrations are for.

    published      whether it is no draft
    is_open        whether it takes registrations, full or not
    has_entries    whether at least one attendee has entered
    has_log        whether the public log of its order is open
    takes_entries  whether a person who registers becomes an entry of a draw
    """

    id: int
    organizer_id: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    currency: str
    pricing_mode: str
    capacity: int
    waitinglist_capacity: int
    registered_count: int
    waitlisted_count: int
    cancelled_at: dt.datetime | None
    published: bool
    is_open: bool
    has_entries: bool
    has_log: bool
    takes_entries: bool

    @property
    def has_free_seat(self) -> bool:
        return self.registered_count < self.capacity

    @property
    def is_full(self) -> bool:
        return not self.has_free_seat and self.waitlisted_count >= self.waitinglist_capacity


class RegistrationView(Struct, frozen=True):
    """A registration as the organizer sees it.

    email           None: the person's data was erased
    amount_paid     the organizer's note; the payer does not see it
    amount_due      what is to be paid by card; None: nothing is
    paid_by_card    what the payment says; None: nothing was paid by card
    card_currency   the currency of that payment
    position        on the waiting list: 1 is the first; 0: not on it
    entered_at      when the scan of the entry was stored; None: the person has not entered
    """

    user_id: str
    email: str | None
    name: str | None
    status: RegistrationStatus
    reason: str | None
    amount_paid: int
    amount_due: int | None
    held_until: dt.datetime | None
    notify: bool
    received_at: dt.datetime
    arrival: int
    position: int
    entered_at: dt.datetime | None
    paid_by_card: int | None
    card_currency: str | None

    @property
    def key(self) -> str:
        """The position of the registration in the order of arrival."""
        return _key_of(self.received_at, self.arrival)


class RegistrationSearchResult(Struct, frozen=True):
    """A part of the registrations. `next_key`: the `after` of the next part; None after the last."""

    event: SearchedEvent
    registrations: list[RegistrationView]
    next_key: str | None


@refuses(NOT_FOUND, FORBIDDEN)
async def search(tx: Tx, caller: Caller, command: SearchRegistrations) -> RegistrationSearchResult:
    """Read a part of the registrations of an event. A whole address finds its owner alone, if it is registered."""
    head = await tx.row(SearchedEvent, FIND_EVENT, {"id": command.event_id})
    if head is None or not caller.may_access(head.organizer_id):
        raise REFUSALS["forbidden" if head else "not_found"](command.event_id)
    text = canonical(command.text or "")
    rows: list[RegistrationView] = []
    if "@" in text:
        rows = await _find(tx, caller, command, f"and users.email = %(text)s and {OWNS_EMAIL}", text)
    if not rows:
        rows = await _find(tx, caller, command, TEXT_CONDITION if text else "", text)
    part = rows[: command.limit]
    if len(rows) > command.limit:
        return RegistrationSearchResult(head, part, part[-1].key)
    return RegistrationSearchResult(head, part, None if text else await _last_read(tx, command))


FIND_EVENT: LiteralString = """
    select id, organizer_id, title, datetime, timezone, currency, pricing_mode, capacity, waitinglist_capacity,
           registered_count, waitlisted_count, cancelled_at, published,
           cancelled_at is null and published and datetime > now() as is_open,
           exists (select from check_in_scans where event_id = events.id and is_entry) as has_entries,
           exists (select from logs where event_id = events.id and closed_at is null) as has_log,
           events.takes_entries
      from events where id = %(id)s
"""

MATCHES: LiteralString = f"""
    select users.public_id as user_id, users.email, {PERSON_NAME} as name, registrations.status::text,
           registrations.reason, registrations.amount_paid, registrations.amount_due, registrations.held_until,
           registrations.notify, registrations.received_at, registrations.arrival,
           registrations.user_id as account_id, paid_by_card, card_currency
"""

BY_CARD: LiteralString = """
    left join lateral (select amount as paid_by_card, currency as card_currency from payments
                        where registrations.amount_due is not null and event_id = registrations.event_id
                          and user_id = registrations.user_id and arrival = registrations.arrival and state = 'paid'
                        order by id desc limit 1) as payment on true
"""

ENTERED_AT: LiteralString = """
    (select stored_at from check_in_scans
      where event_id = %(event_id)s and check_in_scans.user_id = account_id and is_entry) as entered_at
"""

_BEFORE = number_waiting("%(event_id)s", "last_received_at, last_arrival", "result.received_at, result.arrival")
_BEHIND = number_waiting("%(event_id)s", "result.received_at, result.arrival", "last_received_at, last_arrival")

# Each waiting registration counts only those between itself and its neighbour in this part. The first in the part
# counts the registrations between itself and the end of the waiting list at which the list begins.
WITH_POSITIONS: LiteralString = f"""
    select user_id, email, name, status, reason, amount_paid, amount_due, held_until, notify, received_at, arrival,
           case when status = 'waitlisted' then (sum(people_between.number) over line)::bigint else 0 end as position,
           {ENTERED_AT}, paid_by_card, card_currency
      from (select *, lag(received_at, 1, '-infinity') over line as last_received_at,
                   lag(arrival, 1, 0::bigint) over line as last_arrival
              from result window line as (partition by status order by received_at, arrival)) as result
     cross join lateral (select case when result.status = 'waitlisted' then {_BEFORE} else 0 end as number)
           as people_between
    window line as (partition by status order by received_at, arrival)
     order by received_at, arrival
"""
WITH_POSITIONS_FROM_THE_END: LiteralString = f"""
    select user_id, email, name, status, reason, amount_paid, amount_due, held_until, notify, received_at, arrival,
           case when status = 'waitlisted'
                then (select waitlisted_count from events where id = %(event_id)s)
                     - (select count(*) from registrations
                         where event_id = %(event_id)s and status = 'waitlisted' and reason is not null)
                     - (sum(people_between.number) over line)::bigint else 0 end as position,
           {ENTERED_AT}, paid_by_card, card_currency
      from (select *, lag(received_at, 1, 'infinity') over line as last_received_at,
                   lag(arrival, 1, 0::bigint) over line as last_arrival
              from result window line as (partition by status order by received_at desc, arrival desc)) as result
     cross join lateral (select case when result.status = 'waitlisted' then {_BEHIND} else 0 end as number)
           as people_between
    window line as (partition by status order by received_at desc, arrival desc)
     order by received_at desc, arrival desc
"""


async def _find(
    tx: Tx, caller: Caller, command: SearchRegistrations, contains: LiteralString, text: str
) -> list[RegistrationView]:
    """The registrations of the part, and one more if there are more."""
    of_some: LiteralString = "and users.public_id = %(user_id)s" if command.user_id else ""
    if command.user_ids is not None:
        of_some = "and users.public_id = any(%(user_ids)s)"
    order = _order(command)
    conditions = sources(command.status, _after(command))
    filter_condition = condition(command.status)

    async def read(source: LiteralString) -> list[RegistrationView]:
        return await tx.rows(
            RegistrationView,
            f"""
            with result as (
                {MATCHES}
                  from ({source}) as registrations
                 cross join (select %(seen_by)s::bigint as seen_by) as viewer
                  join users on users.id = registrations.user_id {BY_CARD}
                 where {filter_condition} {of_some} {contains}
                 order by {order} limit %(limit)s)
            {WITH_POSITIONS_FROM_THE_END if command.newest_first else WITH_POSITIONS}
            """,
            {**_params(command), "seen_by": caller.tenant_id, "text": text},
        )

    if contains is TEXT_CONDITION and not of_some:
        limit = command.limit + 1
        return await substring_search.search(
            tx, command.event_id, text, conditions, order, limit, read, filter_condition
        )
    if contains or of_some:  # a match may be anywhere
        of_event = STATUS_CONDITIONS.get(command.status, "event_id = %(event_id)s")
        return await read(f"select * from registrations where {of_event} {_after(command)}")
    return await read(in_order(conditions, order, "%(read)s"))


async def _last_read(tx: Tx, command: SearchRegistrations) -> str | None:
    """The key of the last registration that a part with a filter has read; None if it has read them all."""
    if command.status not in FILTERS:
        return None
    order = _order(command)
    source = in_order(sources(command.status, _after(command)), order, "%(read)s")
    rows = await tx.tuples(
        f"""
        select received_at, arrival from ({source}) as rows
         order by {order} offset %(read)s::bigint - 1 limit 1
        """,
        _params(command),
    )
    return _key_of(*rows[0]) if rows else None


def _after(command: SearchRegistrations) -> LiteralString:
    """The condition that the part begins behind the registration `after`."""
    if not command.after:
        return ""
    compared: LiteralString = "<" if command.newest_first else ">"
    return f"and (received_at, arrival) {compared} (%(received_at)s, %(arrival)s)"


def _order(command: SearchRegistrations) -> LiteralString:
    return "received_at desc, arrival desc" if command.newest_first else "received_at, arrival"


def _params(command: SearchRegistrations) -> dict[str, Any]:
    moment, _, arrival = (command.after or "0-0").partition("-")
    limit = command.limit + 1
    return {
        **msgspec.structs.asdict(command),
        "received_at": _EPOCH + dt.timedelta(microseconds=int(moment)),
        "arrival": int(arrival),
        "limit": limit,
        "read": max(limit, MAX_FILTERED_ROWS) if command.status in FILTERS else limit,
    }


def _key_of(received_at: dt.datetime, arrival: int) -> str:
    return f"{(received_at - _EPOCH) // dt.timedelta(microseconds=1)}-{arrival}"
