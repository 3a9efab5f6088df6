"""Cancelling one's own registration: the person asks for it, and can undo that for half a minute.

Until then nothing changes: the seat stays the person's, and the log has nothing of it. Then a loop removes the
registration, and a seat goes to the first on the waiting list, in the same transaction. So a seat is never free in
between, and the order of the log is that in which seats really move. Undoing works until that transaction: the row
itself decides which of the two came first.

`own_cancellations` has what became of each seat, and no people, so that the person's page can say who has it.
Refunds follow the moment of asking, which is what the person was told.
"""

from collections.abc import Sequence
from functools import partial
from typing import LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.log.model import changed_by
from holdfast.events.organizers.branding import LOGO
from holdfast.events.registrations.links import OwnRegistrationCommand
from holdfast.events.registrations.model import UNDO_SECONDS
from holdfast.events.registrations.own_registration import find_own_registrations
from holdfast.events.resources import Database, Reader, Tx
from holdfast.events.seats import held_seats
from holdfast.events.users.model import PUBLIC_ACCENT
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, refuses
from holdfast.kit.postgres.notifications import POLL_SECONDS

MIN_POLL_SECONDS = 0.05
"""The least seconds between two checks: registrations that are due within them share a step."""

LOCKED_RETRY_SECONDS = 0.25
"""Seconds until locked events without a waiter are tried again."""

CANCEL_BATCH_SIZE = 100
"""The most events of one step, and the most registrations of an event that one transaction removes."""


class CancelOwnRegistration(OwnRegistrationCommand):
    """Asks to cancel a registration."""


class UndoOwnCancellation(OwnRegistrationCommand):
    """Asks to undo the cancellation of a registration."""


class GetOwnCancellation(OwnRegistrationCommand):
    """Asks what became of a registration that was cancelled."""


@refuses(NOT_FOUND)
async def cancel(tx: Tx, caller: Caller, command: CancelOwnRegistration) -> bool:
    """Cancel a registration after the time to undo it. Returns False if it is too late for that.

    Asking twice changes nothing.
    """
    [registration] = await find_own_registrations(tx, [command])
    if registration is None:
        raise NOT_FOUND("There is no such registration any more.")
    if not registration.can_be_cancelled:
        return registration.cancels_at is not None
    await tx.run(
        """
        update registrations set cancels_at = clock_timestamp() + %(undo)s * interval '1 second'
         where event_id = %(event_id)s and user_id = (select id from users where public_id = %(public_id)s)
           and arrival = %(arrival)s and cancels_at is null and status <> 'rejected'
        """,
        {**msgspec.structs.asdict(command), "undo": UNDO_SECONDS},
    )
    return True


@refuses(NOT_FOUND)
async def undo(tx: Tx, caller: Caller, command: UndoOwnCancellation) -> None:
    """Undo that a registration is cancelled. Raises `not_found` if it is gone."""
    await tx.run(
        """
        update registrations set cancels_at = null
         where event_id = %(event_id)s and user_id = (select id from users where public_id = %(public_id)s)
           and arrival = %(arrival)s and cancels_at is not null
        """,
        msgspec.structs.asdict(command),
    )
    if (await find_own_registrations(tx, [command]))[0] is None:
        raise NOT_FOUND("There is no such registration any more.")


class OwnCancellation(Struct, frozen=True):
    """What became of a registration that the person cancelled, and its event.

    had_seat       whether it was a seat
    has_next       whether a person who waited has the seat now, or it is held for that person until it is paid
    is_open        whether the event is to come, and not cancelled
    accent, logo   the accent and the file of the logo of the organizer, or None
    """

    had_seat: bool
    has_next: bool
    event_id: int
    title: str
    is_open: bool
    organizer_slug: str
    accent: str | None
    logo: str | None
    mails_wait: bool


async def find_own_cancellation(reader: Reader, caller: Caller, command: GetOwnCancellation) -> OwnCancellation | None:
    """Read what became of a registration that was cancelled; None if it was not, or more than 30 days ago."""
    return await reader.row(
        OwnCancellation,
        f"""
        select had_seat, next_arrival is not null as has_next, event_id, title,
               events.cancelled_at is null and datetime > now() as is_open,
               organizers.slug as organizer_slug, {PUBLIC_ACCENT} as accent, {LOGO} as logo,
               organizers.proved_at is null as mails_wait
          from own_cancellations
          join events on events.id = event_id
          join users as organizers on organizers.id = organizer_id
         where event_id = %(event_id)s and arrival = %(arrival)s
        """,
        {"event_id": command.event_id, "arrival": command.arrival},
    )


async def cancel_due(database: Database, row_waiters: RowWaiters) -> float:
    """Remove the registrations whose cancellation is due. Returns the seconds until the next ones are due."""
    await remove_cancelled(database, row_waiters)
    seconds = await database.read(partial(seconds_until_due, excluded_ids=row_waiters.ids))
    least = LOCKED_RETRY_SECONDS if row_waiters.are_busy else MIN_POLL_SECONDS
    return POLL_SECONDS if seconds is None else min(max(seconds, least), POLL_SECONDS)


LOOP = Loop("own_cancellations.run", cancel_due)


async def remove_cancelled(database: Database, row_waiters: RowWaiters | None = None) -> int:
    """Remove all registrations whose cancellation is due, and leave locked events to the waiters. Returns their number.

    Any number of processes may do this: the one that has the lock on the event removes them.
    """
    total = 0
    due_ids = await database.read(partial(list_due_events, excluded_ids=row_waiters.ids if row_waiters else ()))
    for event_id in due_ids:
        while count := await database.transact(partial(remove_from_event, event_id=event_id, skip_locked=True)):
            total += count
            if count < CANCEL_BATCH_SIZE:
                break
        if count is None and row_waiters:
            row_waiters.leave(event_id, partial(remove_when_unlocked, database, event_id))
    return total


async def remove_when_unlocked(database: Database, event_id: int) -> None:
    """Wait until an event is free, and remove its registrations whose cancellation is due."""
    await database.transact(partial(remove_from_event, event_id=event_id))


async def list_due_events(reader: Reader, excluded_ids: Sequence[int] = ()) -> list[int]:
    """The ids of the events with registrations whose cancellation is due, except the excluded ones."""
    rows = await reader.tuples(
        """
        select distinct event_id
          from (select event_id from registrations
                 where cancels_at <= (select clock_timestamp()) and event_id <> all(%(excluded_ids)s)
                 order by cancels_at limit %(limit)s) as due
         order by event_id
        """,
        {"excluded_ids": list(excluded_ids), "limit": CANCEL_BATCH_SIZE},
    )
    return [id for (id,) in rows]


async def seconds_until_due(reader: Reader, excluded_ids: Sequence[int] = ()) -> float | None:
    """Seconds until the next cancellation is due; None: there is none."""
    return await reader.value(
        """
        select extract(epoch from cancels_at - clock_timestamp())::float8 from registrations
         where cancels_at is not null and event_id <> all(%(excluded_ids)s) order by cancels_at limit 1
        """,
        {"excluded_ids": list(excluded_ids)},
    )


class CancelledRegistration(Struct, frozen=True):
    """A locked registration whose cancellation is due.

    user_id    the internal id of the person
    """

    user_id: int
    public_id: str
    arrival: int
    has_seat: bool


LOCK_EVENT: LiteralString = "select id from events where id = %(id)s for no key update"
LOCK_EVENT_SKIP_LOCKED: LiteralString = f"{LOCK_EVENT} skip locked"


async def remove_from_event(tx: Tx, event_id: int, *, skip_locked: bool = False) -> int | None:
    """Lock an event, and remove its registrations whose cancellation is due.

    Their seats go to the first on the waiting list. Returns the number removed; None: there is no such event, or it was
    skipped.

    skip_locked    skip the event if another transaction has locked it; otherwise wait for the lock
    """
    # A separate statement, so that the next ones see all commits before the lock was granted.
    lock = LOCK_EVENT_SKIP_LOCKED if skip_locked else LOCK_EVENT
    has_lock = await tx.value(lock, {"id": event_id}) is not None
    return await _remove(tx, event_id) if has_lock else None


async def _remove(tx: Tx, event_id: int) -> int:
    cancelled = await lock_due(tx, event_id)
    if not cancelled:
        return 0
    await retain_late_payments(tx, event_id, cancelled)
    await tx.run(
        f"""
        delete from registrations using {changed_by("person")}
         where event_id = %(event_id)s and user_id = any(%(user_ids)s)
        """,
        {"event_id": event_id, "user_ids": [registration.user_id for registration in cancelled]},
    )
    seat_count = sum(registration.has_seat for registration in cancelled)
    # `refill_seats` chooses the same people in the same order. It may seat fewer of them, for example if the event is
    # over; `store_own_cancellations` looks who has a seat then.
    waiting_ids = await list_first_waiting(tx, event_id, seat_count) if seat_count else []
    if seat_count:
        await held_seats.refill_seats(tx, [event_id])
    await store_own_cancellations(tx, event_id, cancelled, waiting_ids)
    return len(cancelled)


async def lock_due(tx: Tx, event_id: int) -> list[CancelledRegistration]:
    """Lock the registrations of an event whose cancellation is due, the first ones first."""
    return await tx.rows(
        CancelledRegistration,
        """
        select user_id, public_id, arrival, status in ('registered', 'held') as has_seat
          from registrations join users on users.id = user_id
         where event_id = %(event_id)s and cancels_at <= (select clock_timestamp())
         order by cancels_at, arrival limit %(limit)s for no key update of registrations
        """,
        {"event_id": event_id, "limit": CANCEL_BATCH_SIZE},
    )


async def retain_late_payments(tx: Tx, event_id: int, cancelled: Sequence[CancelledRegistration]) -> None:
    """Let the organizer keep the payments of people who asked too late for a refund, by the rule for cancellations."""
    commands = [
        OwnRegistrationCommand(event_id, registration.public_id, registration.arrival) for registration in cancelled
    ]
    registrations = await find_own_registrations(tx, commands)
    late = [row.arrival for row in registrations if row and row.amount_due and not row.refundable]
    if late:
        await tx.run(
            """
            update payments set kept = amount - refunded
             where event_id = %(event_id)s and user_id = any(%(user_ids)s) and arrival = any(%(arrivals)s)
               and state = 'paid'
            """,
            {
                "event_id": event_id,
                "user_ids": [registration.user_id for registration in cancelled],
                "arrivals": late,
            },
        )


async def list_first_waiting(tx: Tx, event_id: int, limit: int) -> list[int]:
    """The internal ids of the first who wait for a free seat of a locked event."""
    rows = await tx.tuples(
        """
        select user_id from registrations
         where event_id = %(event_id)s and status = 'waitlisted' and reason is null
         order by received_at, arrival limit %(limit)s
        """,
        {"event_id": event_id, "limit": limit},
    )
    return [user_id for (user_id,) in rows]


async def store_own_cancellations(
    tx: Tx, event_id: int, cancelled: Sequence[CancelledRegistration], waiting_ids: Sequence[int]
) -> None:
    """Store what became of cancelled registrations.

    waiting_ids    the internal ids of the people who were the first to wait for the seats
    """
    await tx.run(
        """
        with cancellation as (
            select arrival, had_seat, row_number() over (partition by had_seat order by index) as rank
              from unnest(%(arrivals)s::bigint[], %(had_seats)s::boolean[])
                   with ordinality as cancelled (arrival, had_seat, index)),
        next_person as (
            select registration.arrival, registration.status, rank
              from unnest(%(waiting_ids)s::bigint[]) with ordinality as waiting (user_id, rank)
             cross join lateral (select arrival, status from registrations
                                  where event_id = %(event_id)s and user_id = waiting.user_id limit 1) as registration
             where registration.status in ('registered', 'held'))
        insert into own_cancellations (event_id, arrival, cancelled_at, had_seat, next_arrival, passed_on_at)
        select %(event_id)s, cancellation.arrival, now(), had_seat, next_person.arrival,
               case when next_person.status = 'registered' then now() end
          from cancellation left join next_person on had_seat and next_person.rank = cancellation.rank
        """,
        {
            "event_id": event_id,
            "arrivals": [registration.arrival for registration in cancelled],
            "had_seats": [registration.has_seat for registration in cancelled],
            "waiting_ids": list(waiting_ids),
        },
    )


async def forget_own_cancellations(tx: Tx) -> int:
    """Delete a batch of what became of registrations cancelled 30 days ago. Returns the number deleted."""
    return await tx.value(
        """
        with old_row as (
            select event_id, arrival from own_cancellations
             where cancelled_at < now() - interval '30 days' limit %(limit)s for update skip locked),
        deleted_cancellation as (
            delete from own_cancellations using old_row
             where (own_cancellations.event_id, own_cancellations.arrival) = (old_row.event_id, old_row.arrival)
         returning 1)
        select count(*) from deleted_cancellation
        """,
        {"limit": 5_000},
    )
