"""The head log: the log of the service whose entries are the signed heads of all other logs.

An entry is the text of a checkpoint: origin, size and root, a line each. Each signed head is an entry, once; those of
one log are in order. The statement that stores a signed head writes the entry to `log_pending`
(`sql.store_checkpoints`), and sealing turns it into a leaf like any other.
"""

from collections.abc import Sequence
from typing import LiteralString

from holdfast.events.log import sql
from holdfast.events.log.model import HeadLog, ListedHead
from holdfast.events.resources import Reader, Tx
from holdfast_verify.formats.proof_file import ProofFile
from holdfast_verify.formats.tree import TILE_WIDTH, inclusion_proof, parse_bundle, tiles_for_inclusion

IS_HEAD_LOG: LiteralString = "event_id is null and queue_id is null"
"""Whether a row of `logs` is the head log."""


async def find_head_log(tx: Tx) -> int:
    """The id of the newest generation of the head log. It is made when it is first needed."""
    find: LiteralString = f"select id from logs where {IS_HEAD_LOG} order by generation desc limit 1"
    id = await tx.value(find)
    if id is None:
        await tx.run("insert into logs default values on conflict do nothing")
        id = await tx.value(find)
    return id


async def list_head_logs(reader: Reader) -> list[HeadLog]:
    """The head logs of which something is sealed, newest generation first."""
    rows = await reader.tuples(
        f"""
        select log_id, origin, size, root, signed_size, checkpoint
          from logs join log_heads on log_id = logs.id where {IS_HEAD_LOG} order by generation desc
        """
    )
    return [HeadLog(*row) for row in rows]


async def store_checkpoint(tx: Tx, head: HeadLog, checkpoint: str) -> None:
    """Store the signed head of a head log, and the places of the heads of other logs in it.

    Nothing is stored if another one, or one with other cosignatures, was stored since `head` was read.
    """
    places = await _find_places(tx, head) if head.signed_size < head.size else {}
    await tx.run(
        """
        with place as (
            select %(log_id)s::bigint as log_id, null::bigint as index
             union all
            select log.log_id, index
              from unnest(%(origins)s::text[], %(indexes)s::bigint[]) as place (origin, index)
             cross join lateral (select log_id from log_heads where origin = place.origin limit 1) as log),
        -- In order of their ids, as sealing locks them.
        locked as materialized (
            select head.*, index
              from (select * from place order by log_id) as place
             cross join lateral (
                select log_id, signed_size, checkpoint from log_heads
                 where log_id = place.log_id limit 1 for no key update) as head),
        is_newest as (
            select from locked
             where log_id = %(log_id)s and (signed_size < %(size)s or checkpoint = %(read_checkpoint)s)),
        listed as (
            update log_heads set listed_in = %(log_id)s, listed_index = index
              from locked
             where log_heads.log_id = locked.log_id and index is not null and exists (select from is_newest))
        update log_heads set signed_size = %(size)s, checkpoint = %(checkpoint)s
         where log_id = %(log_id)s and exists (select from is_newest)
        """,
        {
            "log_id": head.log_id,
            "size": head.size,
            "checkpoint": checkpoint,
            "read_checkpoint": head.checkpoint,
            "origins": [*places],
            "indexes": [*places.values()],
        },
    )


async def find_listed_head(reader: Reader, log_id: int) -> ListedHead | None:
    """The last head of a log that the signed head log has; None: it has none yet."""
    rows = await reader.tuples(
        """
        select head_log.log_id, log_heads.listed_index, head_log.signed_size, head_log.checkpoint
          from log_heads join log_heads as head_log on head_log.log_id = log_heads.listed_in
         where log_heads.log_id = %(log_id)s
        """,
        {"log_id": log_id},
    )
    return ListedHead(*rows[0]) if rows else None


async def prove(reader: Reader, listing: ListedHead) -> ProofFile:
    """The proof that a head is in the head log; its `extra` is the entry."""
    number, place = divmod(listing.entry, TILE_WIDTH)
    entry = parse_bundle(await sql.find_bundle(reader, listing.log_id, number))[place]
    tiles = await sql.find_tiles(reader, {listing.log_id: tiles_for_inclusion(listing.entry, listing.size)})
    proof = inclusion_proof(listing.entry, listing.size, tiles[listing.log_id])
    return ProofFile(listing.entry, proof, listing.checkpoint, entry)


async def _find_places(tx: Tx, head: HeadLog) -> dict[str, int]:
    """The indexes of the entries that are not signed yet, by the origin in them; of each origin the last one."""
    first = head.signed_size // TILE_WIDTH
    rows: Sequence[tuple[int, bytes]] = await tx.tuples(
        """
        select number, entries from log_entries
         where log_id = %(log_id)s and number between %(first)s and %(last)s order by number
        """,
        {"log_id": head.log_id, "first": first, "last": (head.size - 1) // TILE_WIDTH},
    )
    return {
        entry.partition(b"\n")[0].decode(): index
        for number, content in rows
        for index, entry in enumerate(parse_bundle(content), start=number * TILE_WIDTH)
        if index < head.size
    }
