"""Gives the seats of no-shows to the waiting list, once the event has begun.

No seat is given away before the event begins, so a person who comes in time keeps it. Then the waiting list gets, in
its order, first the free seats and then the seats of people who have not entered, the last registered first.
A no-show keeps a registration without a place and with the reason `no_show`: so scanners recognize the person, and the
person does not get ahead of the waiting list. The organizer keeps the payment of a no-show. A person who has to pay for
a seat gets it held for some minutes, like every registration for a paid event.
"""

import datetime as dt
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.events.check_in import sql
from holdfast.events.check_in.model import CheckInEvent, GetCheckInStatus
from holdfast.events.check_in.operations import find_event
from holdfast.events.log.model import changed_by
from holdfast.events.paths import EventId
from holdfast.events.pricing.operations import reprice
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats.held_seats import open_payments
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.operations.operation import Operation, read, single

MAX_HOURS_AFTER_START = 24
"""The hours after the beginning of an event during which its seats can be given away: later seats are useless."""

MAX_NAMES = 200
"""The most names in a preview."""

HandoverStatus = Literal["open", "early", "late", "cancelled"]
"""Whether seats can be given to the waiting list now (`open`), or why not."""


class GiveSeats(Command):
    """Asks to give seats to the waiting list. `at_most`: the number of seats in the preview that the organizer saw."""

    event_id: EventId
    at_most: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class HandoverPreview(Struct, frozen=True):
    """The preview of giving the seats away.

    absent            the number of people with a seat who have not entered
    free              the number of free seats
    waiting           the number of people on the waiting list
    promoted_count    how many of these get a seat
    seats_lost        how many absent people lose their seat: the others keep it
    names             the names of the first people who get a seat
    has_log           whether the public log of its order is open
    """

    event: CheckInEvent
    absent: int
    free: int
    waiting: int
    promoted_count: int
    seats_lost: int
    names: list[str | None]
    has_log: bool

    @property
    def status(self) -> HandoverStatus:
        """Whether seats can be given away now, or the reason why not."""
        if self.event.cancelled_at:
            return "cancelled"
        if not self.event.has_begun:
            return "early"
        return "open" if self.event.now < self.event.datetime + dt.timedelta(hours=MAX_HOURS_AFTER_START) else "late"


class SeatHandover(Struct):
    """The result of giving seats to the waiting list.

    promoted_count    the number of people who got a seat; 0 unless `status` is `open`
    seats_lost        the number of no-shows who lost their seat
    """

    status: HandoverStatus
    promoted_count: int = 0
    seats_lost: int = 0


@refuses(NOT_FOUND, FORBIDDEN)
async def preview(reader: Reader, caller: Caller, command: GetCheckInStatus) -> HandoverPreview:
    """Preview giving the seats of no-shows to the waiting list."""
    event = await find_event(reader, caller, command.event_id)
    counts = await reader.tuples(COUNTS, {"event_id": event.id})
    absent_count, free_count, waiting_count, has_log = counts[0]
    seats = min(waiting_count, free_count + absent_count)
    names = await reader.tuples(
        NAMES, {"event_id": event.id, "seen_by": caller.tenant_id, "limit": min(seats, MAX_NAMES)}
    )
    seats_lost = max(0, seats - free_count)
    return HandoverPreview(
        event, absent_count, free_count, waiting_count, seats, seats_lost, [name for (name,) in names], has_log
    )


@refuses(NOT_FOUND, FORBIDDEN)
async def give_seats(tx: Tx, caller: Caller, command: GiveSeats) -> SeatHandover:
    """Give free seats, and the seats of no-shows, to the waiting list. People who get a seat get a mail."""
    await find_event(tx, caller, command.event_id)
    # A transaction that stores scans locks the event too, so no person enters in between.
    await sql.lock_event(tx, caller, command.event_id)
    before = await preview(tx, caller, GetCheckInStatus(event_id=command.event_id))
    if before.status != "open":
        return SeatHandover(before.status)
    minutes = tx.resources.settings.hold_minutes
    rows = await tx.tuples(SEAT_HANDOVER, {"event_id": command.event_id, "at_most": command.at_most, "hold": minutes})
    promoted_count, held_count, seats_lost = rows[0]
    if held_count:
        await open_payments(tx, [command.event_id])
    await reprice(tx, [command.event_id], "registration")
    return SeatHandover("open", promoted_count, seats_lost)


COUNTS: LiteralString = """
    select (select count(*) from registrations
             where event_id = events.id and status = 'registered'
               and not exists (select from check_in_scans as scans
                                where scans.event_id = registrations.event_id
                                  and scans.user_id = registrations.user_id and is_entry)),
           capacity - registered_count,
           (select count(*) from registrations
             where event_id = events.id and status = 'waitlisted' and reason is null),
           exists (select from logs where event_id = events.id and closed_at is null)
      from events where id = %(event_id)s
"""

NAMES: LiteralString = f"""
    select {sql.LABEL} {sql.people_of_event()} and status = 'waitlisted' and reason is null
     order by received_at, arrival limit %(limit)s
"""

# One statement moves both groups: seats are counted at its end, so they never exceed the capacity.
SEAT_HANDOVER: LiteralString = f"""
    with event as (
        select id, capacity - registered_count as free_seats from events where id = %(event_id)s),
    waiting_person as (
        select user_id, amount_due is not null as must_pay, row_number() over (order by received_at, arrival) as rank
          from registrations where event_id = %(event_id)s and status = 'waitlisted' and reason is null),
    absent_person as (
        select user_id, row_number() over (order by received_at desc, arrival desc) as rank
          from registrations
         where event_id = %(event_id)s and status = 'registered'
           and not exists (select from check_in_scans as scans
                            where scans.event_id = %(event_id)s and scans.user_id = registrations.user_id
                              and is_entry)),
    offer_limit as (
        select free_seats,
               least(%(at_most)s, (select count(*) from waiting_person),
                     free_seats + (select count(*) from absent_person)) as offers
          from event),
    moved_person as (
        select user_id, case when must_pay then 'held' else 'registered' end::registration_status as new_status,
               null as reason, case when must_pay then now() + %(hold)s * interval '1 minute' end as held_until
          from waiting_person cross join offer_limit where rank <= offers
        union all
        select user_id, 'rejected', 'no_show', null
          from absent_person cross join offer_limit where rank <= offers - free_seats),
    changed_registration as (
        update registrations
           set status = moved_person.new_status, reason = moved_person.reason, held_until = moved_person.held_until
          from moved_person cross join {changed_by("organizer")}
         where registrations.event_id = %(event_id)s and registrations.user_id = moved_person.user_id
     returning registrations.status)
    select count(*) filter (where status in ('registered', 'held')), count(*) filter (where status = 'held'),
           count(*) filter (where status = 'rejected')
      from changed_registration
"""

PREVIEW = Operation("preview_seat_handover", None, read(preview))
GIVE_SEATS = Operation("hand_seats_over", None, single(give_seats))
OPERATIONS = (PREVIEW, GIVE_SEATS)
