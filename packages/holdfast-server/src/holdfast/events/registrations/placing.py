"""Placing: the entries of a drawn event get its seats and its waiting places, in the drawn order.

Who came while the list waited for its draw comes behind all who are drawn. If a void draw was given up, the order is
that of the tickets. If the event was cancelled, all are rejected.

A place of the order is processed once: its number is counted in `draw_placed`, in the transaction that gives the
outcome. So it does not matter when a process is killed, or how many do this. A drawn registration gets `draw_at` plus a
microsecond for each place as its `received_at`, so that all that goes by the order of arrival goes by the drawn order.
"""

from functools import partial

from msgspec import Struct

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations.payment_opening import open_payments
from holdfast.events.registrations.pending_batch import SettledBatch
from holdfast.events.registrations.settlement import record
from holdfast.events.resources import Database, Reader, Tx

BATCH_SIZE = 1000
"""Places of the order that one transaction processes."""


async def place_due(database: Database) -> None:
    """Place the entries of all events whose order is known."""
    for event_id in await database.read(list_to_place):
        while await database.transact(partial(place, event_id=event_id)):
            pass


async def list_to_place(reader: Reader) -> list[int]:
    """The ids of the events whose order is known, and whose entries wait for their outcomes."""
    rows = await reader.tuples(
        """
        select id from events
         where takes_entries and (drawn_at is not null or draw_at is null or cancelled_at is not null) order by id
        """
    )
    return [id for (id,) in rows]


async def place(tx: Tx, event_id: int) -> bool:
    """Process the next places of the order of an event. Returns whether more may follow."""
    state = await lock_order(tx, event_id)
    if state is None:
        return False
    outcomes = await give_places(tx, event_id, state)
    end = state.placed + BATCH_SIZE
    await end_batch(tx, event_id, min(end, state.tickets), is_last=end >= state.tickets)
    if "held" in outcomes:
        await open_payments(tx, [event_id])
    if {"registered", "held"} & outcomes.keys():
        await reprice(tx, [event_id], "registration")
    record(SettledBatch(outcomes, []))
    return end < state.tickets


class OrderState(Struct):
    """How far the order of a locked event is processed.

    placed      the number of places that are processed
    tickets     the number of all places, which is the last ticket
    drawn       the number of places that were drawn; the others are those of the tickets with the same numbers
    """

    placed: int
    tickets: int
    drawn: int


async def lock_order(tx: Tx, event_id: int) -> OrderState | None:
    """Lock an event. None: its order is not known, or all is processed."""
    await tx.run("select from events where id = %(id)s for no key update", {"id": event_id})
    return await tx.row(
        OrderState,
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


async def give_places(tx: Tx, event_id: int, state: OrderState) -> dict[str, int]:
    """Give the outcomes of the next places, and tell the log. Returns their numbers, by outcome."""
    rows = await tx.tuples(
        """
        with batch as materialized (
            select place, case when place > %(drawn)s then place else (tickets)[1 + (place - 1) %% 256] end as ticket
              from generate_series(%(placed)s::bigint + 1, %(end)s::bigint) as place
              left join event_drawn_tickets
                on event_id = %(event_id)s and number = (place - 1) / 256 and place <= %(drawn)s
               and number between %(placed)s::bigint / 256 and (%(end)s::bigint - 1) / 256),
        -- Whoever has left has no registration with this number any more.
        next_row as materialized (
            select batch.place, batch.ticket, mine.event_id, mine.user_id, mine.amount_due
              from batch
             cross join lateral (select user_id from event_entries
                                  where event_id = %(event_id)s and ticket = batch.ticket limit 1) as entered
             -- Looked up by the primary key alone: statistics do not know yet how many have this status.
             cross join lateral (select event_id, user_id, amount_due, status, log_number from registrations
                                  where event_id = %(event_id)s and user_id = entered.user_id
                                  limit 1 for no key update) as mine
             where mine.status = 'in_draw' and mine.log_number = batch.ticket),
        event as materialized (
            select capacity - registered_count as seats,
                   greatest(waitinglist_capacity - waitlisted_count, 0) as waitlist_positions,
                   cancelled_at is not null as is_cancelled, draw_at, drawn_at, datetime
              from events where id = %(event_id)s),
        outcome as materialized (
            select place, ticket, event_id, user_id, draw_at, drawn_at, datetime,
                   (case when is_cancelled then 'rejected'
                         when rank <= seats and amount_due is null then 'registered'
                         when rank <= seats then 'held'
                         when rank <= seats + waitlist_positions then 'waitlisted'
                         else 'rejected' end)::registration_status as status,
                   case when is_cancelled then 'event_cancelled'
                        when rank > seats + waitlist_positions then 'event_full' end as reason
              from (select *, row_number() over (order by place) as rank from next_row) as ranked
             cross join event),
        settled as (
            update registrations
               set status = outcome.status, reason = outcome.reason, settled_at = now(),
                   held_until = case when outcome.status = 'held'
                                     then least(now() + %(claim)s * interval '1 hour', datetime) end,
                   received_at = case when drawn_at is null then received_at
                                      when place <= %(drawn)s then draw_at + place * interval '1 microsecond'
                                      else greatest(received_at, draw_at + place * interval '1 microsecond') end
              from outcome
             where registrations.event_id = outcome.event_id and registrations.user_id = outcome.user_id
         returning place, ticket, registrations.status),
        told as (
            insert into log_pending (log_id, kind, first_number, numbers, outcomes)
            select logs.id, 'places', %(placed)s + 1, numbers, outcomes
              from (select array_agg(ticket order by place) as numbers, array_agg(status order by place) as outcomes
                      from settled having count(*) > 0) as places
             cross join lateral (select id from logs where event_id = %(event_id)s and closed_at is null limit 1)
                   as logs)
        select status::text, count(*) from settled group by status
        """,
        {
            "event_id": event_id,
            "placed": state.placed,
            "drawn": state.drawn,
            "end": min(state.placed + BATCH_SIZE, state.tickets),
            "claim": tx.resources.settings.claim_hours,
        },
    )
    return dict(rows)


async def end_batch(tx: Tx, event_id: int, placed: int, *, is_last: bool) -> None:
    """Store how far the order is processed. After the last batch the event gives places on arrival."""
    await tx.run(
        "update events set draw_placed = %(placed)s, takes_entries = not %(is_last)s where id = %(id)s",
        {"id": event_id, "placed": placed, "is_last": is_last},
    )
