"""Gives the seats of those who have not come to those who wait, once the event has begun.

A seat is kept until the event begins: nobody loses it who comes in time. Then the free seats go first, and after them
those of the people who are not in, the last to register first; as many as there are people who wait, in their order.
Who loses a seat this way keeps a registration without a place, whose reason is `no_show`: so scanners know who it is,
and the first on the waiting list does not move behind it. What was paid for it stays with the organizer. Who has to
pay for a seat has it held for some minutes, as everybody has who registers for a paid event.
"""

import datetime as dt
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.events.check_in import sql
from holdfast.events.check_in.model import Head, LookAtCheckIn
from holdfast.events.check_in.operations import find_event
from holdfast.events.ids import EventId
from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations.opening import open_payments
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.modes import read, single
from holdfast.kit.operation import Operation
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, refuses

HOURS = 24
"""How long after the beginning of an event its seats can be given away: later nobody needs one."""

SHOWN = 200
"""The most people who are named before."""

Standing = Literal["open", "early", "late", "cancelled"]


class GiveSeats(Command):
    """Asks to give seats to those who wait. `at_most`: as many as somebody was shown before."""

    event_id: EventId
    at_most: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Preview(Struct, frozen=True):
    """What giving the seats away would do.

    absent      how many have a seat and have not come
    free        seats that nobody has
    waiting     how many wait
    given       how many of them get a seat
    taken       how many of the absent lose theirs: the others keep it
    names       of the first who get a seat
    """

    event: Head
    absent: int
    free: int
    waiting: int
    given: int
    taken: int
    names: list[str | None]

    @property
    def standing(self) -> Standing:
        """Whether seats can be given away now, and why not."""
        if self.event.cancelled_at:
            return "cancelled"
        if not self.event.has_begun:
            return "early"
        return "open" if self.event.now < self.event.datetime + dt.timedelta(hours=HOURS) else "late"


class Given(Struct):
    """How many got a seat, how many of these were of people who had not come; none if `standing` is not open."""

    standing: Standing
    given: int = 0
    taken: int = 0


@refuses(NOT_FOUND, FORBIDDEN)
async def preview(reader: Reader, caller: Caller, command: LookAtCheckIn) -> Preview:
    """Read what giving the seats of those who have not come would do."""
    event = await find_event(reader, caller, command.event_id)
    counts = await reader.tuples(COUNTS, {"event_id": event.id})
    absent, free, waiting = counts[0]
    given = min(waiting, free + absent)
    names = await reader.tuples(NAMES, {"event_id": event.id, "seen_by": caller.tenant_id, "limit": min(given, SHOWN)})
    return Preview(event, absent, free, waiting, given, max(0, given - free), [name for (name,) in names])


@refuses(NOT_FOUND, FORBIDDEN)
async def give(tx: Tx, caller: Caller, command: GiveSeats) -> Given:
    """Give free seats, and those of people who have not come, to the waiting list. Mails tell those who get one."""
    await find_event(tx, caller, command.event_id)
    # Whoever stores a scan locks the event too: nobody comes in between.
    await sql.lock_event(tx, caller, command.event_id)
    before = await preview(tx, caller, LookAtCheckIn(event_id=command.event_id))
    if before.standing != "open":
        return Given(before.standing)
    minutes = tx.resources.settings.hold_minutes
    rows = await tx.tuples(GIVE, {"event_id": command.event_id, "at_most": command.at_most, "hold": minutes})
    given, held, taken = rows[0]
    if held:
        await open_payments(tx, [command.event_id])
    await reprice(tx, [command.event_id], "registration")
    return Given("open", given, taken)


COUNTS: LiteralString = """
    select (select count(*) from registrations
             where event_id = events.id and status = 'registered'
               and not exists (select from check_in_scans as scans
                                where scans.event_id = registrations.event_id
                                  and scans.user_id = registrations.user_id and is_entry)),
           capacity - registered_count, waitlisted_count
      from events where id = %(event_id)s
"""

NAMES: LiteralString = f"""
    select {sql.LABEL} {sql.who()} and status = 'waitlisted' order by received_at, arrival limit %(limit)s
"""

# One statement moves both, so that the seats are counted when it ends, and never go beyond the capacity.
GIVE: LiteralString = """
    with event as (
        select id, capacity - registered_count as free from events where id = %(event_id)s),
    waiting as (
        select user_id, amount_due is not null as pays, row_number() over (order by received_at, arrival) as place
          from registrations where event_id = %(event_id)s and status = 'waitlisted'),
    absent as (
        select user_id, row_number() over (order by received_at desc, arrival desc) as place
          from registrations
         where event_id = %(event_id)s and status = 'registered'
           and not exists (select from check_in_scans as scans
                            where scans.event_id = %(event_id)s and scans.user_id = registrations.user_id
                              and is_entry)),
    fair as (
        select free, least(%(at_most)s, (select count(*) from waiting), free + (select count(*) from absent)) as given
          from event),
    moved as (
        select user_id, case when pays then 'held' else 'registered' end::registration_status as becomes,
               null as reason, case when pays then now() + %(hold)s * interval '1 minute' end as held_until
          from waiting cross join fair where place <= given
        union all
        select user_id, 'rejected', 'no_show', null from absent cross join fair where place <= given - free),
    done as (
        update registrations set status = moved.becomes, reason = moved.reason, held_until = moved.held_until
          from moved
         where registrations.event_id = %(event_id)s and registrations.user_id = moved.user_id
     returning registrations.status)
    select count(*) filter (where status in ('registered', 'held')), count(*) filter (where status = 'held'),
           count(*) filter (where status = 'rejected')
      from done
"""

PREVIEW = Operation("look_at_no_shows", None, read(preview))
GIVE_SEATS = Operation("give_seats_of_no_shows", None, single(give))
OPERATIONS = (PREVIEW, GIVE_SEATS)
