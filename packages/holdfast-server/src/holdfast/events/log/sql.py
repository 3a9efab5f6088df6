"""Statements on logs."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import LiteralString, NamedTuple

from holdfast.events.log.model import LogAddress, LogBundle, LogHead, PendingRow, SignedLog, UnsignedHead
from holdfast.events.resources import Reader, Tx
from holdfast_verify.formats.signed_note import Noun
from holdfast_verify.formats.tree import TileId

ADVISORY_LOCK_ID = 0x7365616C
"""The lock ("seal") of the transaction that seals."""

MAX_COUNTED_ROWS = 10_000
"""Pending rows up to which the oldest is looked for."""


async def read_work(reader: Reader) -> tuple[float | None, bool]:
    """How many seconds the oldest pending row waits (None: there is none), and whether a head waits to be signed."""
    [(seconds, is_unsigned)] = await reader.tuples(
        """
        select (select greatest(0, extract(epoch from clock_timestamp() - min(at)))::float8
                  from (select at from log_pending limit %(rows)s) as pending),
               (select log_id from log_heads where signed_size < size order by log_id limit 1) is not null
        """,
        {"rows": MAX_COUNTED_ROWS},
    )
    return seconds, is_unsigned


async def lock_sealing(tx: Tx) -> bool:
    """Let no other transaction seal until this one ends. Returns False if another one seals."""
    return await tx.value("select pg_try_advisory_xact_lock(%(lock)s)", {"lock": ADVISORY_LOCK_ID})


async def list_pending(tx: Tx, after: int, *, max_logs: int, max_rows: int, max_entries: int) -> list[PendingRow]:
    """The oldest pending rows of each of the next logs after an id, in their order.

    There are as many as make at least `max_entries` entries, or all.
    """
    rows = await tx.tuples(
        """
        with recursive busy (log_id) as (
            (select log_id from log_pending where log_id > %(after)s order by log_id limit 1)
            union all
            select (select log_id from log_pending where log_id > busy.log_id order by log_id limit 1)
              from busy where log_id is not null),
        next_logs as materialized (select log_id from busy where log_id is not null limit %(logs)s),
        next_rows as materialized (
            select pending.*
              from next_logs
             cross join lateral (select log_id, id from log_pending where log_id = next_logs.log_id
                                  order by id limit %(rows)s) as pending
             order by pending.log_id, pending.id limit %(rows)s),
        counted_row as (
            select next_rows.*, sum(entry_count) over (order by next_rows.log_id, next_rows.id) - entry_count
                   as entries_before
              from next_rows
             cross join lateral (
                select coalesce(cardinality(received_at), cardinality(numbers), 1) as entry_count
                  from log_pending where log_id = next_rows.log_id and id = next_rows.id limit 1) as pending)
        -- Locked, so that no account gets another public id, or is erased, before its arrival is sealed.
        select pending.log_id, pending.id, kind, at, details, first_number, received_at,
               case when user_ids is null then visitor_ids
                    else array(
                       select coalesce(registration.logged_as, account.public_id)
                         from unnest(user_ids) with ordinality as arrived (user_id, place)
                         left join lateral (select public_id from users where id = arrived.user_id limit 1)
                              as account on true
                         left join lateral (select logged_as from registrations
                                             where event_id = log.event_id and user_id = arrived.user_id limit 1)
                              as registration on true
                        order by place)
               end,
               nonces::text[], outcomes::text[], cut, numbers
          from counted_row
         cross join lateral (select event_id from logs where id = counted_row.log_id limit 1) as log
         cross join lateral (
            select * from log_pending
             where log_id = counted_row.log_id and id = counted_row.id limit 1 for update) as pending
         where entries_before < %(entries)s order by pending.log_id, pending.id
        """,
        {"after": after, "logs": max_logs, "rows": max_rows, "entries": max_entries},
    )
    return [PendingRow(*row) for row in rows]


async def list_heads(tx: Tx, log_ids: Sequence[int]) -> list[LogHead]:
    """The heads of logs, each with the tiles that an append needs: of each level the last one, unless it is full."""
    rows = await tx.tuples(
        """
        select logs.id, event_id, queue_id, generation, origin, coalesce(size, 0), coalesce(signed_size, 0),
               coalesce(log_heads.arrivals, 0), clock_timestamp(), tile.level, tile.number, tile.hashes
          from unnest(%(log_ids)s::bigint[]) as requested_log (id)
          join logs on logs.id = requested_log.id
          left join log_heads on log_id = logs.id
          left join lateral (
            select last_tile.*
              from generate_series(0, 6) as edge (level)
             cross join lateral (
                select log_tiles.level, number, hashes from log_tiles
                 where log_tiles.log_id = logs.id and log_tiles.level = edge.level
                   and number = size >> 8 * (edge.level + 1) limit 1) as last_tile
             where size >> 8 * edge.level > 0) as tile on true
         order by logs.id
        """,
        {"log_ids": list(log_ids)},
    )
    heads: dict[int, LogHead] = {}
    for *head, level, number, hashes in rows:
        tiles = heads.setdefault(head[0], LogHead(*head, tiles={})).tiles
        if level is not None:
            tiles[TileId(level, number)] = hashes
    return [*heads.values()]


async def find_tiles(reader: Reader, tiles: Mapping[int, Sequence[TileId]]) -> dict[int, dict[TileId, bytes]]:
    """The stored contents of tiles, by log."""
    keys = [(log_id, *tile) for log_id, tiles_of_log in tiles.items() for tile in tiles_of_log]
    log_ids, levels, numbers = zip(*keys, strict=True) if keys else ((), (), ())
    rows = await reader.tuples(
        """
        select tile.*
          from unnest(%(log_ids)s::bigint[], %(levels)s::smallint[], %(numbers)s::bigint[])
               as requested_tile (log_id, level, number)
         cross join lateral (
            select log_id, level, number, hashes from log_tiles
             where log_id = requested_tile.log_id and level = requested_tile.level and number = requested_tile.number
             limit 1) as tile
        """,
        {"log_ids": list(log_ids), "levels": list(levels), "numbers": list(numbers)},
    )
    contents: dict[int, dict[TileId, bytes]] = {log_id: {} for log_id in tiles}
    for log_id, level, number, hashes in rows:
        contents[log_id][TileId(level, number)] = hashes
    return contents


async def store_sealed(
    tx: Tx,
    bundles: Sequence[tuple[int, int, int, bytes]],
    tiles: Sequence[tuple[int, TileId, bytes]],
    heads: Sequence[tuple[int, str, int, bytes, int]],
    rows: Sequence[PendingRow],
) -> None:
    """Store what was sealed, and delete the pending rows of which it was made.

    bundles    ends of bundles, each as log, number, number of the arrival before it, and entries
    tiles      with their whole contents
    heads      each as log, origin, size, root and number of the last arrival
    """
    await tx.run(
        """
        with appended_bundles as (
            insert into log_entries (log_id, number, arrivals_before, entries)
            select * from unnest(%(bundle_logs)s::bigint[], %(bundles)s::bigint[], %(arrivals_before)s::bigint[],
                                 %(entries)b::bytea[])
                on conflict (log_id, number) do update set entries = log_entries.entries || excluded.entries),
        stored_tiles as (
            insert into log_tiles (log_id, level, number, hashes)
            select * from unnest(%(tile_logs)s::bigint[], %(levels)s::smallint[], %(tiles)s::bigint[],
                                 %(hashes)b::bytea[])
                on conflict (log_id, level, number) do update set hashes = excluded.hashes),
        stored_heads as (
            insert into log_heads (log_id, origin, size, root, arrivals, sealed_at)
            select *, clock_timestamp()
              from unnest(%(log_ids)s::bigint[], %(origins)s::text[], %(sizes)s::bigint[], %(roots)b::bytea[],
                          %(arrivals)s::bigint[])
                on conflict (log_id) do update
               set size = excluded.size, root = excluded.root, arrivals = excluded.arrivals,
                   sealed_at = excluded.sealed_at)
        delete from log_pending
         using unnest(%(row_logs)s::bigint[], %(row_ids)s::bigint[]) as sealed_row (log_id, id)
         where log_pending.log_id = sealed_row.log_id and log_pending.id = sealed_row.id
        """,
        {
            "bundle_logs": [log_id for log_id, _, _, _ in bundles],
            "bundles": [number for _, number, _, _ in bundles],
            "arrivals_before": [arrivals for _, _, arrivals, _ in bundles],
            "entries": [entries for _, _, _, entries in bundles],
            "tile_logs": [log_id for log_id, _, _ in tiles],
            "levels": [tile.level for _, tile, _ in tiles],
            "tiles": [tile.number for _, tile, _ in tiles],
            "hashes": [hashes for _, _, hashes in tiles],
            "log_ids": [head[0] for head in heads],
            "origins": [head[1] for head in heads],
            "sizes": [head[2] for head in heads],
            "roots": [head[3] for head in heads],
            "arrivals": [head[4] for head in heads],
            "row_logs": [row.log_id for row in rows],
            "row_ids": [row.id for row in rows],
        },
    )


async def list_unsigned_heads(reader: Reader, limit: int) -> list[UnsignedHead]:
    """The next heads to sign. Those of the head log are left out: they are signed elsewhere (`head_log.py`)."""
    rows = await reader.tuples(
        """
        select log_id, origin, size, root from log_heads
         where signed_size < size
           and log_id <> all(array(select id from logs where event_id is null and queue_id is null))
         order by log_id limit %(limit)s
        """,
        {"limit": limit},
    )
    return [UnsignedHead(*row) for row in rows]


async def store_checkpoints(tx: Tx, head_log_id: int, checkpoints: Sequence[tuple[int, int, str]]) -> None:
    """Store signed heads, each given as log, size and signed note, except those that are older than what is stored.

    What is stored will be in the head log: the text of each, which ends before the empty line.
    """
    await tx.run(
        """
        with stored_head as (
            update log_heads set signed_size = signed_head.size, checkpoint = signed_head.checkpoint
              from unnest(%(log_ids)s::bigint[], %(sizes)s::bigint[], %(checkpoints)s::text[])
                   as signed_head (log_id, size, checkpoint)
             where log_heads.log_id = signed_head.log_id and signed_size < signed_head.size
         returning signed_head.checkpoint)
        insert into log_pending (log_id, kind, details)
        select %(head_log_id)s, 'head',
               jsonb_build_object('text', split_part(checkpoint, e'\\n\\n', 1) || e'\\n')
          from stored_head
        """,
        {
            "head_log_id": head_log_id,
            "log_ids": [log_id for log_id, _, _ in checkpoints],
            "sizes": [size for _, size, _ in checkpoints],
            "checkpoints": [checkpoint for _, _, checkpoint in checkpoints],
        },
    )


_OF_NOUN: Mapping[Noun, LiteralString] = {
    "events": "event_id = %(id)s",
    "queues": "queue_id = %(id)s",
    "heads": "event_id is null and queue_id is null",
}

MAX_GENERATION = 2**31 - 1
"""More than there are of any log."""


def _newest(noun: Noun, columns: LiteralString, joins: LiteralString = "") -> LiteralString:
    """A statement that reads the newest log of an event or queue, up to a generation."""
    return f"""
    select logs.id as log_id, generation, origin, coalesce(signed_size, 0) as size, checkpoint,
           coalesce(log_heads.arrivals, 0) as arrivals {columns}
      from logs left join log_heads on log_heads.log_id = logs.id {joins}
     where {_OF_NOUN[noun]} and generation <= %(generation)s
     order by generation desc limit 1
    """


async def find_log(reader: Reader, address: LogAddress) -> SignedLog | None:
    """The newest log of an event or queue, up to the generation of the address."""
    generation = address.generation or MAX_GENERATION
    return await reader.row(SignedLog, _newest(address.noun, ""), {"id": address.id, "generation": generation})


async def find_bundle_of_arrival(
    reader: Reader, address: LogAddress, number: int
) -> tuple[SignedLog, LogBundle] | None:
    """The bundle of entries that has the arrival with a number if it is sealed, in the newest log that began before.

    The generation of the log is at most that of the address.
    """
    bundle: LiteralString = """
        cross join lateral (
            select number, entries from log_entries
             where log_entries.log_id = logs.id and arrivals_before < %(number)s
             order by arrivals_before desc, number desc limit 1) as bundle"""
    rows = await reader.tuples(
        _newest(address.noun, ", bundle.number, bundle.entries", bundle),
        {"id": address.id, "generation": address.generation or MAX_GENERATION, "number": number},
    )
    return (SignedLog(*rows[0][:6]), LogBundle(*rows[0][6:])) if rows else None


async def find_tile(reader: Reader, log_id: int, tile: TileId, width: int) -> bytes:
    """The first `width` hashes of a stored tile; fewer if it has fewer."""
    return await reader.value(
        """
        select substring(hashes for %(width)s * 32) from log_tiles
         where log_id = %(log_id)s and level = %(level)s and number = %(number)s
        """,
        {"log_id": log_id, "level": tile.level, "number": tile.number, "width": width},
    )


async def find_bundle(reader: Reader, log_id: int, number: int) -> bytes:
    """The entries of a stored bundle."""
    return await reader.value(
        "select entries from log_entries where log_id = %(log_id)s and number = %(number)s",
        {"log_id": log_id, "number": number},
    )


class StoredFreeze(NamedTuple):
    """What is kept of the freeze of a log. `cosignature_count`: of the proof of its freeze; 0: there is no proof."""

    log_id: int
    cosignature_count: int


async def find_stored_freeze(reader: Reader, origin: str) -> StoredFreeze | None:
    """The log with an origin, and what is kept of its freeze."""
    return await reader.row(
        StoredFreeze,
        """
        select log_heads.log_id, coalesce(cardinality(witnesses), 0) as cosignature_count
          from log_heads
          left join lateral (
            select witnesses from freeze_proofs where log_id = log_heads.log_id limit 1) as proof on true
         where origin = %(origin)s
        """,
        {"origin": origin},
    )


async def store_freeze_proof(
    tx: Tx, log_id: int, size: int, proof: str, cosigned_at: Mapping[str, dt.datetime]
) -> None:
    """Store the proof of a freeze, unless one with as many cosignatures is stored.

    size           the number of entries of the log in the head that is proved
    cosigned_at    the times of the cosignatures, by the names of the witnesses
    """
    await tx.run(
        """
        insert into freeze_proofs (log_id, size, proof, witnesses, cosigned_at)
        values (%(log_id)s, %(size)s, %(proof)s, %(witnesses)s, %(cosigned_at)s)
            on conflict (log_id) do update
           set size = excluded.size, proof = excluded.proof, witnesses = excluded.witnesses,
               cosigned_at = excluded.cosigned_at
         where cardinality(freeze_proofs.witnesses) < cardinality(excluded.witnesses)
        """,
        {
            "log_id": log_id,
            "size": size,
            "proof": proof,
            "witnesses": [*cosigned_at],
            "cosigned_at": [*cosigned_at.values()],
        },
    )


async def find_freeze_proof(reader: Reader, address: LogAddress) -> str | None:
    """The proof of the freeze of a log; without a generation, of the newest log that has one."""
    return await reader.value(
        f"""
        select proof from logs
         cross join lateral (select proof from freeze_proofs where log_id = logs.id limit 1) as stored_proof
         where {_OF_NOUN[address.noun]} and (%(generation)s::integer is null or generation = %(generation)s)
         order by generation desc limit 1
        """,
        {"id": address.id, "generation": address.generation},
    )
