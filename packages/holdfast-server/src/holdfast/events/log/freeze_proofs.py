"""Proofs of when a list was frozen: a head of its log that has the freeze, in a head log that witnesses have cosigned.

A cosignature has the time at which the witness made it. So one from before the round shows that the list was frozen
before the round could be known, whatever the clock of the service says. The head log goes on, and later
cosignatures have later times: so the proof is kept.
"""

import datetime as dt
from typing import NamedTuple

from holdfast.events.log import head_log, sql
from holdfast.events.log.model import LogAddress
from holdfast.events.resources import Database, Reader
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast_verify.formats.cosignature import find_cosignature
from holdfast_verify.formats.proof_file import ProofFile
from holdfast_verify.formats.signed_note import parse_checkpoint
from holdfast_verify.formats.tree import TILE_WIDTH, parse_bundle


class FrozenLog(NamedTuple):
    """The log of a frozen list.

    origin      its origin
    size        the number of its entries before the freeze, or fewer
    round_at    the time of the round that draws the list
    """

    origin: str
    size: int
    round_at: dt.datetime


class WitnessedHead(NamedTuple):
    """A head of a log in a cosigned head log.

    size           the number of entries of the log
    cosigned_at    when each witness cosigned the head log, by the names of the witnesses
    """

    log_id: int
    size: int
    proof: ProofFile
    cosigned_at: dict[str, dt.datetime]


async def store_proof(database: Database, frozen_log: FrozenLog) -> None:
    """Keep the proof of a freeze, unless one with as many cosignatures from before the round is kept already."""
    if not database.resources.settings.log_witness_keys:
        return

    async def read(reader: Reader) -> WitnessedHead | None:
        return await _find_head(reader, frozen_log)

    head = await database.read(read)
    if head is not None:
        await database.transact(lambda tx: sql.store_freeze_proof(tx, *head[:2], head.proof.text, head.cosigned_at))


async def read_freeze_proof(reader: Reader, address: LogAddress) -> str:
    """The proof file of a freeze; its `extra` is the head that has it. Raises `not_found`.

    Without a generation, it is that of the newest log that has one.
    """
    proof = await sql.find_freeze_proof(reader, address)
    if proof is None:
        raise NOT_FOUND(
            f"No witness has cosigned a freeze in the log of {address.subject} before its round.",
            hint="Only logs of draws have such a proof, and only if the service has witnesses.",
        )
    return proof


async def _find_head(reader: Reader, frozen_log: FrozenLog) -> WitnessedHead | None:
    """The last head of a log that the head log has, if it has the freeze and is better witnessed than what is kept."""
    stored_freeze = await sql.find_stored_freeze(reader, frozen_log.origin)
    if stored_freeze is None:
        return None
    listing = await head_log.find_listed_head(reader, stored_freeze.log_id)
    if listing is None:
        return None
    cosigned_at = _cosignatures(reader, listing.checkpoint, frozen_log.round_at)
    if len(cosigned_at) <= stored_freeze.cosignature_count:
        return None
    proof = await head_log.prove(reader, listing)
    size = parse_checkpoint((proof.extra or b"").decode()).size
    index = await _index_of_freeze(reader, stored_freeze.log_id, frozen_log.size)
    return None if index is None or size <= index else WitnessedHead(stored_freeze.log_id, size, proof, cosigned_at)


def _cosignatures(reader: Reader, note: str, before: dt.datetime) -> dict[str, dt.datetime]:
    """When each of our witnesses has cosigned a note, if it did before a time."""
    times: dict[str, dt.datetime] = {}
    for verifier, _ in reader.resources.settings.log_witness_keys:
        cosignature = find_cosignature(note, verifier)
        at = cosignature and dt.datetime.fromtimestamp(cosignature.timestamp, dt.UTC)
        if at and at < before:
            times[verifier.name] = at
    return times


async def _index_of_freeze(reader: Reader, log_id: int, size: int) -> int | None:
    """The index of the first freeze after this many entries; None: it is not sealed yet."""
    number, skip = divmod(size, TILE_WIDTH)
    while content := await sql.find_bundle(reader, log_id, number):
        for index, entry in enumerate(parse_bundle(content)):
            if index >= skip and entry.startswith(b'{"kind":"freeze",'):
                return number * TILE_WIDTH + index
        number, skip = number + 1, 0
    return None
