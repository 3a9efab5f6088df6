"""SQL statements on draws. `now` is the time; None: the clock of the database."""

import datetime as dt
from collections.abc import AsyncGenerator, Mapping
from typing import Any, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.draws.model import DrawSubject
from holdfast.events.log.freeze_proofs import FrozenLog
from holdfast.events.resources import Reader, Tx
from holdfast_verify.formats.tree import TILE_WIDTH, parse_bundle

NOW: LiteralString = "coalesce(%(now)s::timestamptz, clock_timestamp())"


class ClosedList(Struct):
    """A list that has closed and is not frozen: its round, the tickets from before that, and the time.

    is_complete    whether all who came before that have their tickets
    is_confirmed   whether it is stored which of them are confirmed
    """

    round: int
    entries: int
    is_complete: bool
    is_confirmed: bool
    now: dt.datetime


class SignedLogHead(Struct):
    """A signed head of the log of a list."""

    origin: str
    size: int
    root: bytes


class FrozenList(Struct):
    """A frozen list, with what became of it."""

    origin: str
    entries: int
    size: int
    root: bytes
    round: int
    is_drawn: bool
    is_void: bool
    now: dt.datetime


async def read_clock(reader: Reader) -> dt.datetime:
    return await reader.value("select now()")


async def list_closed(reader: Reader, subject: DrawSubject, now: dt.datetime | None = None) -> list[int]:
    """The ids of those whose lists have closed and are to be frozen."""
    rows = await reader.tuples(
        f"""
        select id from {subject.table}
         where {subject.is_to_be_drawn} and draw_entries is null and draw_at <= {NOW} order by draw_at, id
        """,
        {"now": now},
    )
    return [id for (id,) in rows]


async def seconds_until_due(reader: Reader, subject: DrawSubject) -> float:
    """Seconds until the next list closes, or the next round is due."""
    seconds = await reader.value(
        f"""
        select min(extract(epoch from case when draw_entries is null then draw_at else draw_round_at end
                                      - clock_timestamp()))::float8
          from {subject.table} where {subject.is_to_be_drawn}
        """
    )
    return 3_600.0 if seconds is None else seconds


async def lock_closed(tx: Tx, subject: DrawSubject, id: int, now: dt.datetime | None = None) -> ClosedList | None:
    """Lock the queue or event, if its list has closed and is to be frozen, so that it gives out no ticket meanwhile."""
    # A separate statement, so that the next one sees all tickets that were given out before the lock was granted.
    await tx.run(f"select from {subject.table} where id = %(id)s for no key update", {"id": id})
    return await tx.row(
        ClosedList,
        f"""
        select draw_round as round, {NOW} as now, coalesce({subject.entries}, 0) as entries,
               {subject.is_complete} as is_complete, {subject.is_confirmed} as is_confirmed
          from {subject.table}
         where id = %(id)s and {subject.is_to_be_drawn} and draw_entries is null and draw_at <= {NOW}
        """,
        {"id": id, "now": now},
    )


async def make_void(tx: Tx, subject: DrawSubject, id: int, now: dt.datetime) -> None:
    """Make a draw void, once. A trigger writes that to the log."""
    await tx.run(
        f"update {subject.table} set draw_void_at = %(now)s where id = %(id)s and draw_void_at is null",
        {"id": id, "now": now},
    )


async def find_signed_head(tx: Tx, subject: DrawSubject, id: int, entries: int) -> SignedLogHead | None:
    """The head of the log of a list, if it is signed and the log has been sealed with the tickets 1 to `entries`.

    It has also been sealed with those of them that are confirmed.
    """
    return await tx.row(
        SignedLogHead,
        f"""
        select origin, size, root
          from logs join log_heads on log_id = logs.id
         where {subject.key} = %(id)s and closed_at is null and signed_size = size
           and not exists (select from log_pending
                            where log_id = logs.id
                              and (kind in ('open', 'confirmations')
                                   or kind = 'arrivals' and first_number <= %(entries)s))
        """,
        {"id": id, "entries": entries},
    )


async def insert_freeze(
    tx: Tx, subject: DrawSubject, id: int, head: SignedLogHead, closed_list: ClosedList, details: str
) -> None:
    """Store a freeze, and tell the log."""
    await tx.run(
        f"""
        with new_freeze as (
            insert into {subject.noun}_freezes ({subject.key}, origin, entries, size, root, round, frozen_at)
            values (%(id)s, %(origin)s, %(entries)s, %(size)s, %(root)s, %(round)s, %(now)s)),
        log_entry as (
            insert into log_pending (log_id, kind, at, details)
            select id, 'freeze', %(now)s, %(details)s::jsonb
              from logs where {subject.key} = %(id)s and closed_at is null)
        update {subject.table} set draw_entries = %(entries)s where id = %(id)s
        """,
        {"id": id, **msgspec.structs.asdict(head), **msgspec.structs.asdict(closed_list), "details": details},
    )


async def list_frozen_logs(reader: Reader, subject: DrawSubject) -> list[FrozenLog]:
    """The logs of the frozen lists whose round has not come yet."""
    rows = await reader.tuples(
        f"""
        select origin, size, draw_round_at
          from {subject.table}
         cross join lateral (select origin, size from {subject.noun}_freezes
                              where {subject.key} = {subject.table}.id limit 1) as frozen
         where {subject.is_to_be_drawn} and draw_entries is not null and draw_round_at > clock_timestamp()
         order by draw_round_at, id
        """
    )
    return [FrozenLog(*row) for row in rows]


async def list_frozen(reader: Reader, subject: DrawSubject, now: dt.datetime | None = None) -> list[tuple[int, int]]:
    """The ids of those whose lists are frozen and to be drawn, each with its round."""
    rows = await reader.tuples(
        f"""
        select id, draw_round from {subject.table}
         where {subject.is_to_be_drawn} and draw_entries is not null and draw_round_at <= {NOW}
         order by draw_round, id
        """,
        {"now": now},
    )
    return [(id, round) for id, round in rows]


async def find_frozen(tx: Tx, subject: DrawSubject, id: int, now: dt.datetime | None = None) -> FrozenList | None:
    """The frozen list; None: there is none, or it is gone."""
    return await tx.row(
        FrozenList,
        f"""
        select origin, entries, size, root, round, {subject.table}.drawn_at is not null as is_drawn,
               draw_void_at is not null as is_void, {NOW} as now
          from {subject.noun}_freezes join {subject.table} on id = {subject.key}
         where {subject.key} = %(id)s and {subject.is_live}
        """,
        {"id": id, "now": now},
    )


async def lock_freeze(tx: Tx, subject: DrawSubject, id: int) -> bool:
    """Lock a frozen list. False: another transaction draws it now, or has drawn it."""
    has_lock = await tx.value(
        f"select true from {subject.noun}_freezes where {subject.key} = %(id)s for no key update skip locked",
        {"id": id},
    )
    # With the lock: a transaction that has drawn the list may have committed while the statement above began.
    return bool(has_lock) and not await tx.value(
        f"select exists (select from {subject.noun}_draws where {subject.key} = %(id)s)", {"id": id}
    )


async def entries_since(tx: Tx, frozen_list: FrozenList) -> AsyncGenerator[Mapping[str, Any]]:
    """The sealed entries of the log of a frozen list that came after the head that the freeze names."""
    number, skip = divmod(frozen_list.size, TILE_WIDTH)
    while True:
        content = await tx.value(
            """
            select entries from log_entries join log_heads using (log_id)
             where origin = %(origin)s and log_entries.number = %(number)s
            """,
            {"origin": frozen_list.origin, "number": number},
        )
        if content is None:
            return
        for entry in parse_bundle(content)[skip:]:
            yield msgspec.json.decode(entry)
        number, skip = number + 1, 0


async def insert_draw(
    tx: Tx, subject: DrawSubject, id: int, frozen_list: FrozenList, signature: bytes, seed: bytes
) -> None:
    """Store a draw with its order, which must be that of `holdfast_verify/formats/drawn_order.py`: confirmed tickets
    first.
    """
    await tx.run(
        f"""
        with drawn_ticket as materialized (
            select ticket, key, row_number() over (order by confirmed.ticket is null, key, ticket) as place
              from (select ticket, sha256(%(seed)s::bytea || int8send(ticket)) as key
                      from generate_series(1, %(entries)s::bigint) as ticket) as keyed
              left join ({subject.confirmed}) as confirmed (ticket) using (ticket)),
        new_draw as (
            insert into {subject.noun}_draws ({subject.key}, round, signature, seed, order_hash, drawn_at)
            select %(id)s, %(round)s, %(signature)s, %(seed)s,
                   sha256(coalesce((select string_agg(int8send(ticket), ''::bytea order by key, ticket)
                                      from drawn_ticket), ''::bytea)),
                   %(now)s)
        {subject.order}
        """,
        {"id": id, **msgspec.structs.asdict(frozen_list), "signature": signature, "seed": seed},
    )


async def end_draw(tx: Tx, subject: DrawSubject, id: int, now: dt.datetime | None) -> bool:
    """Say that a list is drawn, also in its log. False: the queue or event is gone."""
    # The queue or event is locked only now, so that people could come while the order was computed.
    return await tx.value(
        f"""
        with drawn_subject as (
            update {subject.table} set drawn_at = {NOW}{subject.on_drawn}
             where id = %(id)s and {subject.is_live} returning id),
        draw_details as (
            select {subject.key} as drawn_id,
                   jsonb_build_object('round', round, 'signature', encode(signature, 'hex'),
                                      'seed', encode(seed, 'hex'), 'order', encode(order_hash, 'hex')) as details
              from {subject.noun}_draws where {subject.key} = %(id)s),
        log_entry as (
            insert into log_pending (log_id, kind, at, details)
            select logs.id, 'draw', {NOW}, details
              from drawn_subject join draw_details on drawn_id = drawn_subject.id
              join logs on logs.{subject.key} = drawn_subject.id and closed_at is null)
        select exists (select from drawn_subject)
        """,
        {"id": id, "now": now},
    )
