"""Finding the registrations of an event whose address and name contain the words of a text, in any order.

Both sides are folded by one rule, the function `fold_text`: without case, accents and characters that are not visible.

The registrations of most events are read one by one. When an organizer searches an event with many, a job copies the
searched columns to `searched_registrations`, in order of arrival, and an index finds substrings in them (the function
`found_registrations`). Registrations that came later are read one by one, until the job runs again.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import LiteralString, TypeVar

from msgspec import Struct

from holdfast.events.registrations.model import PERSON_NAME
from holdfast.events.registrations.sql import in_order
from holdfast.events.resources import Steps, Tx
from holdfast.kit.postgres.transactions import Task

T = TypeVar("T")

REINDEX_THRESHOLD = 10_000
"""The job runs when this many more people have a place than after its last run. Reading them takes 30 to 100 ms."""

INDEX_BATCH_SIZE = 2_000
"""Registrations that the job writes in one transaction."""

MAX_SCANNED_ROWS: LiteralString = "2000"
"""Registrations that are read before the index is used. A common text fills the page with them; the index would find
thousands of registrations to sort."""

TEXT_CONDITION: LiteralString = f"""
    and searched_words(users.email, {PERSON_NAME}) like all ((select search_patterns(%(text)s))::text[])
"""
"""Whether rows of `registrations` and `users` contain the words of the text."""

INDEXED_UNTIL: LiteralString = "(select received_at, arrival from searched_events where event_id = %(event_id)s)"
"""SQL for the last registration, in order of arrival, that the index has."""


class IndexArguments(Struct):
    """The arguments of `INDEX`."""

    event_id: int


INDEX = Task("index_registrations", IndexArguments)
"""Index the registrations of an event, up to the newest settled one."""


async def search(
    tx: Tx,
    event_id: int,
    text: str,
    conditions: Sequence[LiteralString],
    order: LiteralString,
    limit: int,
    read: Callable[[LiteralString], Awaitable[list[T]]],
    filter_condition: LiteralString = "true",
) -> list[T]:
    """The first registrations of an event that contain a text.

    conditions          they meet one of these; the index of an event has the rows of each condition in order
    limit               the largest number of registrations that are read
    read                reads the registrations that contain the text, among the rows of a `select` from
                        `registrations`. The `select` has the parameters `event_id`, `text`, `seen_by` and `limit`
    filter_condition    a further condition, which `read` checks too
    """
    if not await _is_indexed(tx, event_id, text):
        return await read(
            " union all ".join(f"select * from registrations where {condition}" for condition in conditions)
        )
    matches_read = await read(in_order(conditions, order, MAX_SCANNED_ROWS))
    if len(matches_read) >= limit:
        return matches_read
    # Read in order of arrival: when that is the order of the page, no registration behind its end is read.
    in_turn: LiteralString = "at desc, number desc" if order.endswith("desc") else "at, number"
    matches: LiteralString = f"""
        (select * from found_registrations(%(event_id)s, %(text)s) order by {in_turn} offset 0) as match
         cross join lateral (select * from registrations where event_id = %(event_id)s and user_id = match.person
                             offset 0) as registrations
        """
    later: LiteralString = " union all ".join(
        f"select * from registrations where {condition} and (received_at, arrival) > {INDEXED_UNTIL}"
        for condition in conditions
    )
    fitting: LiteralString = f"({' or '.join(conditions)}) and {filter_condition}"
    return await read(
        f"""
        {_page(matches, f"received_at = at and arrival = number and {fitting}", order)}
        union all
        {_page(f"({later}) as registrations", filter_condition, order)}
        """
    )


def _page(source: LiteralString, condition: LiteralString, order: LiteralString) -> LiteralString:
    """A select of the first registrations of a source that contain the text. Each is read alone, with its person."""
    return f"""
        (select registrations.* from {source}
          cross join lateral (select id, email, name, role from users where id = registrations.user_id limit 1) as users
          cross join (select %(seen_by)s::bigint as seen_by) as viewer
          where {condition} {TEXT_CONDITION}
          order by {order} limit %(limit)s)
        """


async def _is_indexed(tx: Tx, event_id: int, text: str) -> bool:
    """Whether the index has registrations of an event, and a word of the text is long enough for it.

    If many registrations are missing, the indexing job is enqueued.
    """
    [(is_indexed, lags)] = await tx.tuples(
        """
        select coalesce(received_at > '-infinity', false) and word_parts(%(event_id)s, %(text)s) <> '{}',
               registered_count + waitlisted_count - coalesce(places, 0) >= %(many)s
               and coalesce(touched_at < now() - interval '1 minute', true)
          from events left join searched_events on event_id = id
         where id = %(event_id)s
        """,
        {"event_id": event_id, "text": text, "many": REINDEX_THRESHOLD},
    )
    if lags and await tx.value(REQUEST_INDEXING, {"event_id": event_id}):
        await tx.enqueue(INDEX, IndexArguments(event_id))
    return is_indexed


REQUEST_INDEXING: LiteralString = """
    insert into searched_events (event_id) values (%(event_id)s)
        on conflict (event_id) do update set touched_at = now()
     where searched_events.touched_at < now() - interval '1 minute'
    returning true
"""


async def index(steps: Steps, arguments: IndexArguments) -> None:
    """Index the registrations of an event. May be called at any time, and twice."""
    while await steps.transact(partial(index_batch, event_id=arguments.event_id)) == INDEX_BATCH_SIZE:
        pass


async def index_batch(tx: Tx, *, event_id: int) -> int:
    """Index the next registrations in order of arrival. Returns their number."""
    # A transaction that changes or removes names waits for this lock, and then sees the rows that are written here.
    await tx.run("select from searched_events where event_id = %(event_id)s for no key update", {"event_id": event_id})
    return await tx.value(INDEX_BATCH, {"event_id": event_id, "batch_size": INDEX_BATCH_SIZE})


# A registration that arrived before a settled one is never stored later (see settlement.py).
_NEXT: LiteralString = f"""
    (received_at, arrival) > {INDEXED_UNTIL}
    and (received_at, arrival) < (select received_at, arrival from first_unsettled)
"""
_SETTLED: Sequence[LiteralString] = [
    f"event_id = %(event_id)s and status = {status} and {_NEXT}"
    for status in ("'registered'", "'held'", "'waitlisted'", "'rejected'")
]
INDEX_BATCH: LiteralString = f"""
    with first_unsettled as (
        select * from (
            (select received_at, arrival from registrations where event_id = %(event_id)s and status = 'pending'
              order by received_at, arrival limit 1)
             union all
            -- A draw gives them another time.
            (select received_at, arrival from registrations where event_id = %(event_id)s and status = 'in_draw'
              order by received_at, arrival limit 1)
             union all select 'infinity', 0) as first
         order by received_at, arrival limit 1),
    batch as materialized ({in_order(_SETTLED, "received_at, arrival", "%(batch_size)s")}),
    stored_words as (
        insert into searched_registrations (event_id, user_id, words, received_at, arrival)
        select event_id, user_id, searched_words(users.email, coalesce(batch.name, users.name)), received_at, arrival
          from batch
         cross join lateral (select email, name from users where id = batch.user_id limit 1) as users
         order by event_id, user_id
            on conflict (event_id, user_id) do update
           set words = excluded.words, received_at = excluded.received_at, arrival = excluded.arrival)
    update searched_events
       set received_at = coalesce(last.received_at, searched_events.received_at),
           arrival = coalesce(last.arrival, searched_events.arrival),
           places = case when number < %(batch_size)s then registered_count + waitlisted_count else places end,
           touched_at = now()
      from (select count(*) as number from batch) as counted
     cross join (select registered_count, waitlisted_count from events where id = %(event_id)s) as event
      left join lateral (select received_at, arrival from batch
                          order by received_at desc, arrival desc limit 1) as last on true
     where event_id = %(event_id)s
 returning number
"""
