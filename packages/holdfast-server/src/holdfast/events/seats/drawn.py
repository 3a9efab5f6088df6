"""The draws of events: a person who registers before `draw_at` is an entry, and gets a place by the draw.

A registration of an event that takes entries is settled as `in_draw`: it gets the next number of the log, which is its
ticket, and the log has its arrival without a decision. So the list of a draw is the numbers 1 to n. A person who comes
while the list waits for its draw gets a ticket too, and a place behind all who are drawn.

An entry is confirmed if the person had shown before `draw_at` that the address is theirs (`users.proved_at`). Confirmed
entries come before all others. The log says which they are only when the list has closed. Before, it would reveal
whether an address that is typed into a form is known to the service.

Then the entries get the seats and the waiting places in the drawn order. If a void draw was given up, the order is that
of the tickets. If the event was cancelled, all are rejected. A place of the order is processed once: its number is
counted in `draw_placed`, in the transaction that gives the decision. So it does not matter when a process is killed, or
how many do this. A drawn registration gets `draw_at` plus a microsecond for each place as its `received_at`, so that
all that goes by the order of arrival goes by the drawn order.
"""

import datetime as dt
from functools import partial
from typing import LiteralString

from msgspec import Struct

from holdfast.events.draws.model import DrawSubject
from holdfast.events.pricing.operations import reprice
from holdfast.events.resources import Database, Reader, Tx
from holdfast.events.seats.held_seats import lock_event_of, open_payments
from holdfast.events.seats.intake import CutTimeout, wait_for_cut
from holdfast.events.seats.settlement import SettledBatch, count_settled

DRAWN_PLACE: LiteralString = """
    case when events.drawn_at is not null and registration.log_number <= events.draw_entries
              and registration.status not in ('pending', 'in_draw')
         then (extract(epoch from registration.received_at - events.draw_at) * 1000000)::bigint end
"""
"""SQL for the place of a `registration` in the order that was drawn for one of `events`; null: it was not drawn."""

IS_CONFIRMED: LiteralString = """
    coalesce(case when events.draw_confirmed is null then registration.proved_at < events.draw_at
                  else exists (select from event_confirmations
                                where event_id = events.id and number = (registration.log_number - 1) / 1000
                                  and registration.log_number = any(tickets)) end, false)
"""
"""SQL for whether a `registration`, with `proved_at` of its person, is a confirmed entry of the draw of `events`."""

WAIT_SECONDS = 0.2
"""Seconds for which the freeze of a list waits for accepting transactions. It is tried again."""

DRAW_BATCH_SIZE = 1000
"""Places of the order that one transaction processes."""


async def is_intake_stored(database: Database) -> bool:
    """Whether all registrations that were stamped before this call are committed. False: that takes longer."""
    try:
        await database.autocommit(lambda reader: wait_for_cut(reader, WAIT_SECONDS))
    except CutTimeout:
        return False
    return True


async def confirm_entries(tx: Tx, event_id: int, now: dt.datetime) -> None:
    """Store which entries of a closed list are confirmed, and tell the log."""
    await tx.run(
        """
        with confirmed_tickets as materialized (
            select (ticket - 1) / 1000 as number, array_agg(ticket::integer order by ticket) as tickets
              from events join event_entries on event_id = events.id and entered_at < draw_at
              join users on users.id = user_id and proved_at < draw_at
             where events.id = %(id)s group by 1),
        stored_tickets as (
            insert into event_confirmations (event_id, number, tickets)
            select %(id)s, number, tickets from confirmed_tickets),
        log_entry as (
            insert into log_pending (log_id, kind, at, details)
            select logs.id, 'confirmations', %(now)s, jsonb_build_object('numbers', tickets)
              from confirmed_tickets join logs on event_id = %(id)s and closed_at is null order by number)
        update events set draw_confirmed = coalesce((select sum(cardinality(tickets)) from confirmed_tickets), 0)
         where id = %(id)s
        """,
        {"id": event_id, "now": now},
    )


EVENT_DRAWS = DrawSubject(
    noun="event",
    table="events",
    is_live="cancelled_at is null and published",
    entries="""
        (select ticket from event_entries where event_id = events.id and entered_at < draw_at
          order by ticket desc limit 1)""",
    is_complete="""
        not exists (select from registrations
                     where event_id = events.id and status = 'pending' and received_at < draw_at)""",
    order="""
        insert into event_drawn_tickets (event_id, number, tickets)
        select %(id)s, (place - 1) / 256, array_agg(ticket::integer order by place) from drawn_ticket group by 2""",
    on_drawn="",
    confirmed="select unnest(tickets)::bigint from event_confirmations where event_id = %(id)s",
    is_confirmed="draw_confirmed is not null",
    confirm=confirm_entries,
    wait=is_intake_stored,
)


async def place_due(database: Database) -> None:
    """Place the entries of all events whose order is known."""
    for event_id in await database.read(list_to_place):
        while await database.transact(partial(place_entries, event_id=event_id)):
            pass


async def list_to_place(reader: Reader) -> list[int]:
    """The ids of the events whose order is known, and whose entries are not settled yet."""
    rows = await reader.tuples(
        """
        select id from events
         where takes_entries and (drawn_at is not null or draw_at is null or cancelled_at is not null) order by id
        """
    )
    return [id for (id,) in rows]


async def place_entries(tx: Tx, event_id: int) -> bool:
    """Process the next places of the order of an event. Returns whether more may follow."""
    progress = await lock_order(tx, event_id)
    if progress is None:
        return False
    counts = await give_places(tx, event_id, progress)
    end = progress.placed + DRAW_BATCH_SIZE
    await end_batch(tx, event_id, min(end, progress.tickets), is_last=end >= progress.tickets)
    if "held" in counts:
        await open_payments(tx, [event_id])
    if {"registered", "held"} & counts.keys():
        await reprice(tx, [event_id], "registration")
    count_settled(SettledBatch(counts, []))
    return end < progress.tickets


class OrderProgress(Struct):
    """How far the order of a locked event is processed.

    placed      the number of places that are processed
    tickets     the number of all places, which is the last ticket
    drawn       the number of places that were drawn; the others are those of the tickets with the same numbers
    """

    placed: int
    tickets: int
    drawn: int


async def lock_order(tx: Tx, event_id: int) -> OrderProgress | None:
    """Lock an event. None: its order is not known, or all is processed."""
    await lock_event_of(tx, event_id)
    return await tx.row(
        OrderProgress,
        """
        select draw_placed as placed,
               coalesce((select max(ticket) from event_entries where event_id = events.id), 0) as tickets,
               case when drawn_at is not null then draw_entries else 0 end as drawn
          from events
         where id = %(id)s and takes_entries
           and (drawn_at is not null or draw_at is null or cancelled_at is not null)
        """,
        {"id": event_id},
    )


async def give_places(tx: Tx, event_id: int, progress: OrderProgress) -> dict[str, int]:
    """Settle the entries of the next places, and tell the log. Returns how many have got each status."""
    rows = await tx.tuples(
        """
        with batch as materialized (
            select place, case when place > %(drawn)s then place else (tickets)[1 + (place - 1) %% 256] end as ticket
              from generate_series(%(placed)s::bigint + 1, %(end)s::bigint) as place
              left join event_drawn_tickets
                on event_id = %(event_id)s and number = (place - 1) / 256 and place <= %(drawn)s
               and number between %(placed)s::bigint / 256 and (%(end)s::bigint - 1) / 256),
        -- A person who has left has no registration with this number any more.
        next_row as materialized (
            select batch.place, batch.ticket, registration.event_id, registration.user_id, registration.amount_due
              from batch
             cross join lateral (select user_id from event_entries
                                  where event_id = %(event_id)s and ticket = batch.ticket limit 1) as entered
             -- Looked up by the primary key alone: statistics do not know yet how many have this status.
             cross join lateral (select event_id, user_id, amount_due, status, log_number from registrations
                                  where event_id = %(event_id)s and user_id = entered.user_id
                                  limit 1 for no key update) as registration
             where registration.status = 'in_draw' and registration.log_number = batch.ticket),
        event as materialized (
            select capacity - registered_count as seats,
                   greatest(waitinglist_capacity - waitlisted_count, 0) as waitlist_places,
                   cancelled_at is not null as is_cancelled, draw_at, drawn_at, datetime
              from events where id = %(event_id)s),
        decision as materialized (
            select place, ticket, event_id, user_id, draw_at, drawn_at, datetime,
                   (case when is_cancelled then 'rejected'
                         when rank <= seats and amount_due is null then 'registered'
                         when rank <= seats then 'held'
                         when rank <= seats + waitlist_places then 'waitlisted'
                         else 'rejected' end)::registration_status as status,
                   case when is_cancelled then 'event_cancelled'
                        when rank > seats + waitlist_places then 'event_full' end as reason
              from (select *, row_number() over (order by place) as rank from next_row) as ranked
             cross join event),
        settled_registration as (
            update registrations
               set status = decision.status, reason = decision.reason, settled_at = now(),
                   held_until = case when decision.status = 'held'
                                     then least(now() + %(claim_hours)s * interval '1 hour', datetime) end,
                   received_at = case when drawn_at is null then received_at
                                      when place <= %(drawn)s then draw_at + place * interval '1 microsecond'
                                      else greatest(received_at, draw_at + place * interval '1 microsecond') end
              from decision
             where registrations.event_id = decision.event_id and registrations.user_id = decision.user_id
         returning place, ticket, registrations.status),
        logged_places as (
            insert into log_pending (log_id, kind, first_number, numbers, outcomes)
            select logs.id, 'places', %(placed)s + 1, numbers, outcomes
              from (select array_agg(ticket order by place) as numbers, array_agg(status order by place) as outcomes
                      from settled_registration having count(*) > 0) as places
             cross join lateral (select id from logs where event_id = %(event_id)s and closed_at is null limit 1)
                   as logs)
        select status::text, count(*) from settled_registration group by status
        """,
        {
            "event_id": event_id,
            "placed": progress.placed,
            "drawn": progress.drawn,
            "end": min(progress.placed + DRAW_BATCH_SIZE, progress.tickets),
            "claim_hours": tx.resources.settings.claim_hours,
        },
    )
    return dict(rows)


async def end_batch(tx: Tx, event_id: int, placed_count: int, *, is_last: bool) -> None:
    """Store how far the order is processed. After the last batch the event gives places on arrival."""
    await tx.run(
        "update events set draw_placed = %(placed)s, takes_entries = not %(is_last)s where id = %(id)s",
        {"id": event_id, "placed": placed_count, "is_last": is_last},
    )
