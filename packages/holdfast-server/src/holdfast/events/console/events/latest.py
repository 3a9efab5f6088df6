"""What happened last with the people of an event: who registered, who paid, and who came in."""

import datetime as dt
from collections.abc import Sequence
from typing import Literal, LiteralString

from msgspec import Struct

from holdfast.events.paths import EventId
from holdfast.events.registrations.model import NAME, RegistrationStatus
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import read

MAX_HAPPENINGS = 6
"""How many things the overview of an event shows."""

MAX_READ_ROWS = 100
"""How many of the newest payments, and of the newest scans, are read: few of them may be paid, or entries."""


class ReadLatest(Command):
    """Asks what happened last with the people of an event."""

    event_id: EventId


class Happening(Struct, frozen=True):
    """Something that happened with a person.

    at         when
    email      None: the person's data was erased
    status     the present status of the person's registration; None: it was removed
    device     entered: the device that scanned the code
    amount     paid: in minor units of `currency`
    """

    kind: Literal["received", "paid", "entered"]
    at: dt.datetime
    user_id: str
    email: str | None
    name: str | None
    status: RegistrationStatus | None
    device: str | None
    amount: int | None
    currency: str | None


LATEST: LiteralString = f"""
    with own as materialized (
        select id, organizer_id as seen_by from events
         where id = %(event_id)s and (%(seen_by)s::bigint is null or organizer_id = %(seen_by)s)),
    entry as (
        select 'received' as kind, received_at as at, user_id, null as device, null::bigint as amount, null as currency
          from own
         cross join unnest(enum_range(null::registration_status)) as of_status
         cross join lateral (select * from registrations
                              where event_id = own.id and status = of_status
                              order by received_at desc, arrival desc limit %(limit)s) as registered
        union all
        select 'paid', paid_at, user_id, null, amount, currency
          from own
         cross join lateral (select * from payments
                              where event_id = own.id order by id desc limit %(max_read_rows)s) as payment
         where state = 'paid'
        union all
        select 'entered', told_at, user_id, device, null, null
          from own
         cross join lateral (select * from check_in_scans
                              where event_id = own.id order by changed desc limit %(max_read_rows)s) as scan
         where is_entry),
    newest as (select * from entry order by at desc limit %(limit)s)
    select kind, at, users.public_id as user_id, users.email, {NAME} as name, registrations.status::text as status,
           device, amount, currency
      from newest cross join own
     cross join lateral (select * from users where id = newest.user_id limit 1) as users
      left join lateral (select * from registrations
                          where event_id = own.id and user_id = newest.user_id limit 1) as registrations on true
     order by at desc
"""


async def read_latest(reader: Reader, caller: Caller, command: ReadLatest) -> Sequence[Happening]:
    """Read what happened last, newest first. It is empty if the caller has no such event."""
    values = {
        "event_id": command.event_id,
        "seen_by": caller.tenant_id,
        "limit": MAX_HAPPENINGS,
        "max_read_rows": MAX_READ_ROWS,
    }
    return await reader.rows(Happening, LATEST, values)


READ_LATEST = Operation("get_latest_of_event", None, read(read_latest))
OPERATIONS = (READ_LATEST,)
"""It has no route and no tool of its own."""
