"""SQL statements on draws of queues. `now` is the time; None: the clock of the database."""

import datetime as dt
from collections.abc import AsyncGenerator, Mapping
from typing import Any, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.resources import Reader, Tx
from holdfast.kit.tlog.tree import TILE_WIDTH, parse_bundle

NOW: LiteralString = "coalesce(%(now)s::timestamptz, clock_timestamp())"

IS_TO_BE_DRAWN: LiteralString = (
    "draw_at is not null and drawn_at is null and draw_void_at is null and deleted_at is null"
)
"""Whether a draw of a queue is to come. An index has these queues."""

IS_LATE: LiteralString = """
    (queues.draw_at is not null
     and case when queues.draw_entries is null then visitor.joined_at >= queues.draw_at
              else visitor.ticket > queues.draw_entries end)
"""
"""Whether a `visitor` of `queues` came after the list of a draw had closed."""

PLACE: LiteralString = f"""
    case when visitor.ticket is null or queues.draw_at is null or {IS_LATE} then visitor.ticket
         when queues.drawn_at is null then coalesce(queues.draw_entries, queues.tickets)
         else (select places[1 + (visitor.ticket - 1) %% 256] from queue_places
                where queue_id = queues.id and number = (visitor.ticket - 1) / 256) end
"""
"""The place in line of a `visitor` of `queues`: its ticket or the drawn place. Before the draw: the end of the list."""

OPENS_AT: LiteralString = """
    greatest(queues.starts_at, case when queues.drawn_at is null then queues.draw_round_at end)
"""
"""The time before which nobody is released from `queues`; null: none."""

DRAW_CHECK: LiteralString = """
    left join lateral (
        select origin as check_origin, encode(root, 'base64') as check_root, encode(signature, 'hex') as check_signature
          from queue_freezes join queue_draws using (queue_id)
         where queue_id = room.id and room.drawn_at is not null limit 1) as checks on true
"""
"""SQL for FROM: what the order of a drawn `room` is computed from. `CHECKED` names it."""

CHECKED: LiteralString = "checks.check_origin, checks.check_root, checks.check_signature"


class Closed(Struct):
    """A list that has closed and is not frozen: its round, the tickets from before that, and the time."""

    round: int
    entries: int
    now: dt.datetime


class Head(Struct):
    """A signed head of the log of a queue."""

    origin: str
    size: int
    root: bytes


class Frozen(Struct):
    """A frozen list, with what became of it."""

    queue_id: int
    origin: str
    entries: int
    size: int
    root: bytes
    round: int
    is_drawn: bool
    is_void: bool
    now: dt.datetime


async def list_closed(reader: Reader, now: dt.datetime | None = None) -> list[int]:
    """The ids of the queues whose lists have closed and are to be frozen."""
    rows = await reader.tuples(
        f"""
        select id from queues
         where {IS_TO_BE_DRAWN} and draw_entries is null and draw_at <= {NOW} order by draw_at, id
        """,
        {"now": now},
    )
    return [id for (id,) in rows]


async def seconds_until_due(reader: Reader) -> float:
    """Seconds until the next list closes, or the next round is due."""
    seconds = await reader.value(
        f"""
        select min(extract(epoch from case when draw_entries is null then draw_at else draw_round_at end
                                      - clock_timestamp()))::float8
          from queues where {IS_TO_BE_DRAWN}
        """
    )
    return 3_600.0 if seconds is None else seconds


async def lock_closed(tx: Tx, id: int, now: dt.datetime | None = None) -> Closed | None:
    """Lock the queue, if its list has closed and is to be frozen, so that no ticket is given out meanwhile."""
    # A separate statement, so that the next one sees all tickets that were given out before the lock was granted.
    await tx.run("select from queues where id = %(id)s for no key update", {"id": id})
    return await tx.row(
        Closed,
        f"""
        select draw_round as round, {NOW} as now,
               coalesce((select ticket from queue_visitors where queue_id = queues.id and joined_at < draw_at
                          order by ticket desc limit 1), 0) as entries
          from queues
         where id = %(id)s and {IS_TO_BE_DRAWN} and draw_entries is null and draw_at <= {NOW}
        """,
        {"id": id, "now": now},
    )


async def make_void(tx: Tx, id: int, now: dt.datetime) -> None:
    """Make the draw of a queue void. A trigger tells the log."""
    await tx.run("update queues set draw_void_at = %(now)s where id = %(id)s", {"id": id, "now": now})


async def find_signed_head(tx: Tx, id: int, entries: int) -> Head | None:
    """The head of the log of a queue, if it is signed and the log has been sealed with the tickets 1 to `entries`."""
    return await tx.row(
        Head,
        """
        select origin, size, root
          from logs join log_heads on log_id = logs.id
         where queue_id = %(id)s and closed_at is null and signed_size = size
           and not exists (select from log_pending
                            where log_id = logs.id
                              and (kind = 'open' or (kind = 'arrivals' and first_number <= %(entries)s)))
        """,
        {"id": id, "entries": entries},
    )


async def insert_freeze(tx: Tx, id: int, head: Head, closed: Closed, details: str) -> None:
    """Store a freeze, and tell the log."""
    await tx.run(
        """
        with frozen as (
            insert into queue_freezes (queue_id, origin, entries, size, root, round, frozen_at)
            values (%(id)s, %(origin)s, %(entries)s, %(size)s, %(root)s, %(round)s, %(now)s)),
        logged as (
            insert into log_pending (log_id, kind, at, details)
            select id, 'freeze', %(now)s, %(details)s::jsonb from logs where queue_id = %(id)s and closed_at is null)
        update queues set draw_entries = %(entries)s where id = %(id)s
        """,
        {"id": id, **msgspec.structs.asdict(head), **msgspec.structs.asdict(closed), "details": details},
    )


async def list_frozen(reader: Reader, now: dt.datetime | None = None) -> list[tuple[int, int]]:
    """The ids of the queues whose lists are frozen and to be drawn, each with its round."""
    rows = await reader.tuples(
        f"""
        select id, draw_round from queues
         where {IS_TO_BE_DRAWN} and draw_entries is not null and draw_round_at <= {NOW} order by draw_round, id
        """,
        {"now": now},
    )
    return [(id, round) for id, round in rows]


async def find_frozen(tx: Tx, id: int, now: dt.datetime | None = None) -> Frozen | None:
    return await tx.row(
        Frozen,
        f"""
        select queue_id, origin, entries, size, root, round, queues.drawn_at is not null as is_drawn,
               draw_void_at is not null as is_void, {NOW} as now
          from queue_freezes join queues on id = queue_id
         where queue_id = %(id)s and deleted_at is null
        """,
        {"id": id, "now": now},
    )


async def lock_freeze(tx: Tx, id: int) -> bool:
    """Lock the frozen list of a queue. False: another transaction draws it now, or has drawn it."""
    return bool(
        await tx.value(
            """
            select true from queue_freezes
             where queue_id = %(id)s and not exists (select from queue_draws where queue_id = %(id)s)
               for no key update skip locked
            """,
            {"id": id},
        )
    )


async def entries_since(tx: Tx, frozen: Frozen) -> AsyncGenerator[Mapping[str, Any]]:
    """The sealed entries of the log of a frozen list that came after the head that the freeze names."""
    number, skip = divmod(frozen.size, TILE_WIDTH)
    while True:
        content = await tx.value(
            """
            select entries from log_entries join log_heads using (log_id)
             where origin = %(origin)s and log_entries.number = %(number)s
            """,
            {"origin": frozen.origin, "number": number},
        )
        if content is None:
            return
        for entry in parse_bundle(content)[skip:]:
            yield msgspec.json.decode(entry)
        number, skip = number + 1, 0


async def insert_draw(tx: Tx, id: int, frozen: Frozen, signature: bytes, seed: bytes) -> None:
    """Store a draw with the place of each ticket. It must give the order of `draws/order.py`."""
    await tx.run(
        """
        with drawn as materialized (
            select ticket, row_number() over (order by sha256(%(seed)s::bytea || int8send(ticket)), ticket) as place
              from generate_series(1, %(entries)s::bigint) as ticket),
        stored as (
            insert into queue_draws (queue_id, round, signature, seed, order_hash, drawn_at)
            select %(id)s, %(round)s, %(signature)s, %(seed)s,
                   sha256(coalesce((select string_agg(int8send(ticket), ''::bytea order by place) from drawn),
                                   ''::bytea)),
                   %(now)s)
        insert into queue_places (queue_id, number, places)
        select %(id)s, (ticket - 1) / 256, array_agg(place::integer order by ticket) from drawn group by 2
        """,
        {"id": id, **msgspec.structs.asdict(frozen), "signature": signature, "seed": seed},
    )


async def begin_releases(tx: Tx, id: int, now: dt.datetime | None) -> None:
    """Let the releases of a drawn queue begin, and tell the log of the draw."""
    # The queue is locked only now, so that visitors could join while the order was computed.
    await tx.run(
        f"""
        with drawn as (
            update queues set drawn_at = {NOW}, paced_at = clock_timestamp() where id = %(id)s returning id),
        told as (
            select queue_id,
                   jsonb_build_object('round', round, 'signature', encode(signature, 'hex'),
                                      'seed', encode(seed, 'hex'), 'order', encode(order_hash, 'hex')) as details
              from queue_draws where queue_id = %(id)s)
        insert into log_pending (log_id, kind, at, details)
        select logs.id, 'draw', {NOW}, details
          from drawn join told on queue_id = drawn.id join logs on logs.queue_id = drawn.id and closed_at is null
        """,
        {"id": id, "now": now},
    )
