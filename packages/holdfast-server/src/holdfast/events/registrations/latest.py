"""What happened last with the people of an event, for its page in the console."""

import datetime as dt
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, LiteralString

from msgspec import Struct, structs

from holdfast.events.paths import EventId
from holdfast.events.registrations.model import PERSON_NAME, RegistrationStatus
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.operations.operation import Operation, read

MAX_HAPPENINGS = 6
"""How many things the overview of an event shows."""

MAX_READ_HAPPENINGS = 200
"""How many of the newest things are read: those of many people in one minute are shown as one."""

COUNTED_STATUSES = ("registered", "waitlisted")
"""Statuses whose new registrations are counted together; one with another status has a reason of its own."""

MIN_GROUPED = 3
"""From how many people on they are counted and not named."""

MAX_READ_ROWS = 100
"""How many of the newest payments, and of the newest scans, are read: few of them may be paid, or entries."""


class ReadLatest(Command):
    """Asks what happened last with the people of an event."""

    event_id: EventId


class LatestEntry(Struct, frozen=True):
    """Something that happened with a person.

    at         when
    email      None: the person's data was erased
    status     the present status of the person's registration; None: it was removed
    reason     why it has this status, if it is not the order of arrival
    device     entered: the device that scanned the code
    amount     paid: in minor units of `currency`
    count      with how many people the same happened in this minute; 1: with the named one alone
    """

    kind: Literal["received", "paid", "entered"]
    at: dt.datetime
    user_id: str
    email: str | None
    name: str | None
    status: RegistrationStatus | None
    reason: str | None
    device: str | None
    amount: int | None
    currency: str | None
    count: int = 1


_LATEST: LiteralString = f"""
    with own_event as materialized (
        select id, organizer_id as seen_by from events
         where id = %(event_id)s and (%(seen_by)s::bigint is null or organizer_id = %(seen_by)s)),
    entry as (
        select 'received' as kind, received_at as at, user_id, null as device, null::bigint as amount, null as currency
          from own_event
         cross join unnest(enum_range(null::registration_status)) as of_status
         cross join lateral (select * from registrations
                              where event_id = own_event.id and status = of_status
                              order by received_at desc, arrival desc limit %(limit)s) as registration
        union all
        select 'paid', paid_at, user_id, null, amount, currency
          from own_event
         cross join lateral (select * from payments
                              where event_id = own_event.id order by id desc limit %(max_read_rows)s) as payment
         where state = 'paid'
        union all
        select 'entered', told_at, user_id, device, null, null
          from own_event
         cross join lateral (select * from check_in_scans
                              where event_id = own_event.id order by changed desc limit %(max_read_rows)s) as scan
         where is_entry),
    newest_entry as (select * from entry order by at desc limit %(limit)s)
    select kind, at, users.public_id as user_id, users.email, {PERSON_NAME} as name,
           registrations.status::text as status, registrations.reason, device, amount, currency
      from newest_entry cross join own_event
     cross join lateral (select * from users where id = newest_entry.user_id limit 1) as users
      left join lateral (select * from registrations
                          where event_id = own_event.id and user_id = newest_entry.user_id
                          limit 1) as registrations on true
     order by at desc
"""


async def read_latest(reader: Reader, caller: Caller, command: ReadLatest) -> Sequence[LatestEntry]:
    """Read what happened last, newest first. It is empty if the caller has no such event."""
    values = {
        "event_id": command.event_id,
        "seen_by": caller.tenant_id,
        "limit": MAX_READ_HAPPENINGS,
        "max_read_rows": MAX_READ_ROWS,
    }
    return _grouped(await reader.rows(LatestEntry, _LATEST, values))


def _grouped(happenings: Sequence[LatestEntry]) -> Sequence[LatestEntry]:
    """The newest things, with those of several people in the same minute as one. `happenings`: newest first.

    The oldest ones may be a part of a crowd that was not read to its end: a number of them would be wrong, so they are
    left out, or named if there are no others.
    """
    grouped: list[LatestEntry] = []
    for (kind, status, _), crowd in groupby(happenings, _crowd_key):
        alike = list(crowd)
        is_crowd = len(alike) >= MIN_GROUPED and (kind != "received" or status in COUNTED_STATUSES)
        is_cut = alike[-1] is happenings[-1] and len(happenings) == MAX_READ_HAPPENINGS
        if is_crowd and not is_cut:
            grouped.append(structs.replace(alike[0], count=len(alike)))
        elif not (is_crowd and grouped):
            grouped += alike
    return grouped[:MAX_HAPPENINGS]


def _crowd_key(entry: LatestEntry) -> tuple[str, RegistrationStatus | None, dt.datetime]:
    """What the things that are shown as one have in common."""
    return entry.kind, entry.status, entry.at.replace(second=0, microsecond=0)


READ_LATEST = Operation("get_latest_of_event", None, read(read_latest))
OPERATIONS = (READ_LATEST,)
"""An operation of the console alone: it has no route of the API and no tool."""
