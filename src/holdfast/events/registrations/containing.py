"""Finding the registrations of an event whose address or name contains a text.

The registrations of most events are read one by one. When somebody searches an event with many, a job writes what is
searched into `searched_registrations`, in order of arrival, and an index finds a part of it (migration 0035). Those who
came later are read one by one, until the job runs again.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import LiteralString, TypeVar

from msgspec import Struct

from holdfast.events.registrations.model import NAME
from holdfast.events.registrations.sql import in_order
from holdfast.events.resources import Steps, Tx
from holdfast.kit.tasks import Task

T = TypeVar("T")

MANY = 10_000
"""The job runs when so many more people have a place than when it was through. To read them takes about 10 ms."""

PORTION = 2_000
"""Registrations that the job writes in one transaction."""

FIRST: LiteralString = "2000"
"""How many are looked at before the index is used. A common text has filled the page by then; the index would find
thousands of registrations to sort."""

SHORTEST = 3
"""Characters of a part. A shorter text has none, so everything is read for it."""

CONTAINS: LiteralString = f"and (strpos(users.email, %(text)s) > 0 or strpos(lower({NAME}), %(text)s) > 0)"
"""Whether rows of `registrations` and `users` contain the text."""

UNTIL: LiteralString = "(select received_at, arrival from searched_events where event_id = %(event_id)s)"
"""The last registration in the order of arrival that the index has."""


class OfEvent(Struct):
    """A task about one event."""

    event_id: int


INDEX = Task("index_registrations", OfEvent)
"""Write what is searched of the registrations of an event, up to the newest that is settled."""


async def search(
    tx: Tx,
    event_id: int,
    text: str,
    which: Sequence[LiteralString],
    order: LiteralString,
    limit: int,
    read: Callable[[LiteralString], Awaitable[list[T]]],
) -> list[T]:
    """The first registrations of an event that contain a text.

    which    conditions, of which they meet one; the index of an event has those that meet one of them in order
    limit    the most that are read
    read     runs a statement that reads those that contain the text, among the rows of a `select` from `registrations`.
             It has the parameters `event_id`, `text`, `seen_by` and `limit`
    """
    if not await _is_indexed(tx, event_id) or len(text) < SHORTEST:
        return await read(" union all ".join(f"select * from registrations where {each}" for each in which))
    found = await read(in_order(which, order, FIRST))
    if len(found) >= limit:
        return found
    # Looked at in order of arrival: when that is the order of the page, nobody is looked at behind its end.
    in_turn: LiteralString = "at desc, number desc" if order.endswith("desc") else "at, number"
    matches: LiteralString = f"""
        (select * from found_registrations(%(event_id)s, %(text)s) order by {in_turn} offset 0) as match
         cross join lateral (select * from registrations where event_id = %(event_id)s and user_id = match.person
                             offset 0) as registrations
        """
    later: LiteralString = " union all ".join(
        f"select * from registrations where {each} and (received_at, arrival) > {UNTIL}" for each in which
    )
    return await read(
        f"""
        {_page(matches, f"received_at = at and arrival = number and ({' or '.join(which)})", order)}
        union all
        {_page(f"({later}) as registrations", "true", order)}
        """
    )


def _page(source: LiteralString, condition: LiteralString, order: LiteralString) -> LiteralString:
    """The first of some registrations that contain the text. Each is looked at by itself, with its person."""
    return f"""
        (select registrations.* from {source}
          cross join lateral (select id, email, name, role from users where id = registrations.user_id limit 1) as users
          cross join (select %(seen_by)s::bigint as seen_by) as reader
          where {condition} {CONTAINS}
          order by {order} limit %(limit)s)
        """


async def _is_indexed(tx: Tx, event_id: int) -> bool:
    """Whether something of an event is in the index. If much is not, a job is enqueued that changes that."""
    [(is_indexed, lags)] = await tx.tuples(
        """
        select coalesce(received_at > '-infinity', false),
               registered_count + waitlisted_count - coalesce(places, 0) >= %(many)s
               and coalesce(touched_at < now() - interval '1 minute', true)
          from events left join searched_events on event_id = id
         where id = %(event_id)s
        """,
        {"event_id": event_id, "many": MANY},
    )
    if lags and await tx.value(ASK, {"event_id": event_id}):
        await tx.enqueue(INDEX, OfEvent(event_id))
    return is_indexed


ASK: LiteralString = """
    insert into searched_events (event_id) values (%(event_id)s)
        on conflict (event_id) do update set touched_at = now()
     where searched_events.touched_at < now() - interval '1 minute'
    returning true
"""


async def index(steps: Steps, of: OfEvent) -> None:
    """Write what is searched of the registrations of an event. May be called at any time, and twice."""
    while await steps.transact(partial(index_portion, event_id=of.event_id)) == PORTION:
        pass


async def index_portion(tx: Tx, *, event_id: int) -> int:
    """Write what is searched of the next registrations in order of arrival. Returns how many."""
    # Whoever changes or removes names waits for this lock, and then finds what is written here.
    await tx.run("select from searched_events where event_id = %(event_id)s for no key update", {"event_id": event_id})
    return await tx.value(WRITE, {"event_id": event_id, "portion": PORTION})


# Nobody is stored later who arrived before somebody who is settled (see settlement.py).
_NEXT: LiteralString = f"""
    (received_at, arrival) > {UNTIL} and (received_at, arrival) < (select received_at, arrival from unsettled)
"""
_SETTLED: Sequence[LiteralString] = [
    f"event_id = %(event_id)s and status = {each} and {_NEXT}"
    for each in ("'registered'", "'held'", "'waitlisted'", "'rejected'")
]
WRITE: LiteralString = f"""
    with unsettled as (
        select * from (
            (select received_at, arrival from registrations where event_id = %(event_id)s and status = 'pending'
              order by received_at, arrival limit 1)
             union all select 'infinity', 0) as first
         order by received_at, arrival limit 1),
    portion as materialized ({in_order(_SETTLED, "received_at, arrival", "%(portion)s")}),
    written as (
        insert into searched_registrations (event_id, user_id, words, received_at, arrival)
        select event_id, user_id, searched_words(users.email, coalesce(portion.name, users.name)), received_at, arrival
          from portion
         cross join lateral (select email, name from users where id = portion.user_id limit 1) as users
         order by event_id, user_id
            on conflict (event_id, user_id) do update
           set words = excluded.words, received_at = excluded.received_at, arrival = excluded.arrival)
    update searched_events
       set received_at = coalesce(last.received_at, searched_events.received_at),
           arrival = coalesce(last.arrival, searched_events.arrival),
           places = case when number < %(portion)s then registered_count + waitlisted_count else places end,
           touched_at = now()
      from (select count(*) as number from portion) as counted
     cross join (select registered_count, waitlisted_count from events where id = %(event_id)s) as event
      left join lateral (select received_at, arrival from portion
                          order by received_at desc, arrival desc limit 1) as last on true
     where event_id = %(event_id)s
 returning number
"""
