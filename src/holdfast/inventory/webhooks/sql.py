"""Statements on webhooks."""

from collections.abc import Sequence
from typing import Any, LiteralString

from msgspec import Struct

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.webhooks.model import EVEN_UNINSTALLED, Delivery, Parked, Received

CHANNEL = "webhooks"
"""The channel on which deliveries are announced."""


class Taken(Struct, frozen=True):
    """A delivery that this process handles. `until`: until when no other process does, in microseconds since 1970."""

    id: int
    attempts: int
    until: int
    delivery: Delivery


class Settled(Struct, frozen=True):
    """What came of a delivery.

    error    why it was not handled; None: it was
    pause    seconds until it is tried again; None: it is not
    """

    taken: Taken
    error: str | None = None
    pause: float | None = None


async def insert(tx: Tx, received: Sequence[Received]) -> int:
    """Store deliveries for shops that have the app, each once. Returns how many were new."""
    return await tx.value(
        """
        with stored as (
            insert into webhooks (shop_id, topic, webhook_id, event_id, triggered_at, payload)
            select shops.id, given.topic, given.webhook_id, given.event_id, given.triggered_at, given.payload
              from unnest(%(domains)s::text[], %(topics)s::text[], %(webhook_ids)s::text[], %(event_ids)s::text[],
                          %(triggered)s::timestamptz[], %(payloads)s::bytea[])
                       as given (domain, topic, webhook_id, event_id, triggered_at, payload)
              join shops on shops.domain = given.domain
              join installs on installs.shop_id = shops.id
             where installs.uninstalled_at is null or given.topic = any(%(even_uninstalled)s)
                on conflict do nothing
            returning 1)
        select count(*) from stored
        """,
        {
            "domains": [each.domain for each in received],
            "topics": [each.topic for each in received],
            "webhook_ids": [each.webhook_id for each in received],
            "event_ids": [each.event_id for each in received],
            "triggered": [each.triggered_at for each in received],
            "payloads": [each.payload for each in received],
            "even_uninstalled": [*EVEN_UNINSTALLED],
        },
    )


MICROSECONDS: LiteralString = "(extract(epoch from due_at) * 1000000)::bigint"

TAKEN: LiteralString = f"""
    select id, attempts, {MICROSECONDS}, shop_id, topic, webhook_id, event_id, triggered_at, payload, received_at
      from taken order by id
"""


async def take(tx: Tx, limit: int, of_one: int, busy: Sequence[int], seconds: float) -> list[Taken]:
    """Deliveries that are due, the oldest first. Nobody else takes them for so many seconds.

    of_one    the most of one shop
    busy      shops of which none are taken
    """
    rows = await tx.tuples(
        f"""
        with due as (
            select id, shop_id, due_at from webhooks where due_at <= now() and shop_id <> all(%(busy)s)
             order by due_at limit 200 for update skip locked),
        in_turn as (select id, due_at, row_number() over (partition by shop_id order by due_at, id) as place from due),
        taken as (
            update webhooks
               set due_at = clock_timestamp() + %(seconds)s * interval '1 second', attempts = attempts + 1
             where id = any(array(select id from in_turn where place <= %(of_one)s
                                   order by place, due_at limit %(limit)s))
            returning *)
        {TAKEN}
        """,
        {"limit": limit, "of_one": of_one, "busy": list(busy), "seconds": seconds},
    )
    return [_taken(*row) for row in rows]


async def take_more(tx: Tx, shop_id: int, topics: Sequence[str], limit: int, seconds: float) -> list[Taken]:
    """Deliveries of a shop about these topics that are due and did not fail yet, the oldest first."""
    rows = await tx.tuples(
        f"""
        with taken as (
            update webhooks
               set due_at = clock_timestamp() + %(seconds)s * interval '1 second', attempts = attempts + 1
             where id = any(array(select id from webhooks
                                   where due_at <= now() and shop_id = %(shop_id)s and topic = any(%(topics)s)
                                     and attempts = 0
                                   order by due_at limit %(limit)s for update skip locked))
            returning *)
        {TAKEN}
        """,
        {"shop_id": shop_id, "topics": list(topics), "limit": limit, "seconds": seconds},
    )
    return [_taken(*row) for row in rows]


def _taken(id: int, attempts: int, until: int, *delivery: Any) -> Taken:
    return Taken(id, attempts, until, Delivery(*delivery))


async def settle(tx: Tx, settled: Sequence[Settled]) -> None:
    """Store what came of deliveries, unless others have taken them meanwhile."""
    await tx.run(
        f"""
        update webhooks
           set handled_at = case when given.error is null then clock_timestamp() end,
               payload = case when given.error is not null then payload end,
               due_at = clock_timestamp() + given.pause * interval '1 second',
               error = left(given.error, 1000)
          from unnest(%(ids)s::bigint[], %(untils)s::bigint[], %(errors)s::text[], %(pauses)s::float8[])
                   as given (id, until, error, pause)
         where webhooks.id = given.id and {MICROSECONDS} = given.until
        """,
        {
            "ids": [each.taken.id for each in settled],
            "untils": [each.taken.until for each in settled],
            "errors": [each.error for each in settled],
            "pauses": [each.pause for each in settled],
        },
    )


async def next_due(reader: Reader, busy: Sequence[int]) -> float | None:
    """Seconds until the next delivery is due; None if none is. `busy`: shops that are left out."""
    return await reader.value(
        """
        select extract(epoch from due_at - clock_timestamp())::float8 from webhooks
         where due_at is not null and shop_id <> all(%(busy)s) order by due_at limit 1
        """,
        {"busy": list(busy)},
    )


async def drop_pending(tx: Tx, shop_id: int) -> None:
    """Delete what is not handled yet of a shop that has uninstalled the app."""
    await tx.run(
        """
        delete from webhooks where shop_id = %(shop_id)s and handled_at is null and topic <> all(%(even_uninstalled)s)
        """,
        {"shop_id": shop_id, "even_uninstalled": [*EVEN_UNINSTALLED]},
    )


async def list_parked(reader: Reader, limit: int) -> list[Parked]:
    """Deliveries that could not be handled, the newest first."""
    return await reader.rows(
        Parked,
        """
        select webhooks.id, shops.domain, topic, attempts, coalesce(error, '') as error
          from webhooks join shops on shops.id = webhooks.shop_id
         where due_at is null and handled_at is null order by webhooks.id desc limit %(limit)s
        """,
        {"limit": limit},
    )


async def unpark(tx: Tx, id: int | None, shop_id: int | None = None) -> int:
    """Let a parked delivery be tried again, or all of them, or all of a shop. Returns how many."""
    return await tx.value(
        """
        with again as (
            update webhooks set due_at = now(), attempts = 0
             where due_at is null and handled_at is null
               and (%(id)s::bigint is null or id = %(id)s) and (%(shop_id)s::bigint is null or shop_id = %(shop_id)s)
            returning 1)
        select count(*) from again
        """,
        {"id": id, "shop_id": shop_id},
    )


async def forget(tx: Tx) -> int:
    """Delete a portion of the deliveries that were handled 8 days ago. Returns how many."""
    return await tx.value(
        """
        with old as (
            select id from webhooks where handled_at < now() - interval '8 days'
             order by handled_at limit 5000 for update skip locked),
        deleted as (delete from webhooks using old where webhooks.id = old.id returning 1)
        select count(*) from deleted
        """
    )
