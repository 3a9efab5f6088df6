"""What the public addresses of logs show."""

from typing import Any

from holdfast.events.log import head_log, keys, sql
from holdfast.events.log.model import LogAddress, SignedLog
from holdfast.events.resources import Reader
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast_verify.formats.entries import arrival_prefix, timestamp
from holdfast_verify.formats.proof_file import ProofFile
from holdfast_verify.formats.signed_note import Signer, encode_base64
from holdfast_verify.formats.tree import (
    HASH_BYTES,
    TILE_WIDTH,
    TileId,
    bundle,
    inclusion_proof,
    parse_bundle,
    parse_tile_path,
    tiles_for_inclusion,
)

RETRY_SECONDS = 1
"""Seconds after which a client may ask again for what is not sealed or not signed yet."""


async def read_checkpoint(reader: Reader, address: LogAddress) -> str:
    """The signed head of a log, of the newest generation with None. Raises `not_found`."""
    log = await _find_log(reader, address)
    if log.checkpoint is None:
        raise _unsigned(address)
    return log.checkpoint


async def read_tile(reader: Reader, address: LogAddress, path: str) -> bytes:
    """A tile of hashes, or a bundle of entries, by its path that begins with `tile/`. Raises `not_found`."""
    try:
        level, number, width = parse_tile_path(path)
    except ValueError as error:
        raise NOT_FOUND(str(error)) from error
    log = await _find_log(reader, address)
    signed_width = min(TILE_WIDTH, (log.size >> 8 * (level or 0)) - number * TILE_WIDTH)
    if width > signed_width:
        raise NOT_FOUND(
            f"The log of {address.subject} has {log.size:,} signed entries, and this is not a part of them.",
            hint="Read the checkpoint, and ask for what its size has.",
        )
    if level is None:
        entries = await sql.find_bundle(reader, log.log_id, number)
        return bundle(parse_bundle(entries)[:width]) if width < TILE_WIDTH else entries
    content = await sql.find_tile(reader, log.log_id, TileId(level, number), width)
    assert len(content) == width * HASH_BYTES, f"{path} of log {log.log_id} is too narrow"
    return content


async def read_verifier_keys(reader: Reader, address: LogAddress) -> str:
    """The vkeys of a log, one a line; the first one signs. Raises `not_found`."""
    log = await _find_log(reader, address)
    signers = [Signer(log.origin, key) for key in await keys.open_keys(reader)] if log.origin else []
    if not signers:
        raise _unsigned(address)
    return "".join(f"{signer.vkey}\n" for signer in signers)


async def read_proof(reader: Reader, address: LogAddress, number: int) -> str:
    """The proof file of an arrival; its `extra` is the entry. Raises `not_found`.

    Without a generation, it is looked for in the newest log that began before it.
    """
    match = await sql.find_bundle_of_arrival(reader, address, number)
    if match is None or address.generation not in (None, match[0].generation):
        await _find_log(reader, address)
        raise _no_arrival(address, number)
    log, (bundle_number, content) = match
    prefix = arrival_prefix(number)
    entries = parse_bundle(content)
    offset = next((offset for offset, entry in enumerate(entries) if entry.startswith(prefix)), None)
    if offset is None and number <= log.arrivals:
        raise _no_arrival(address, number)
    if offset is None or (index := bundle_number * TILE_WIDTH + offset) >= log.size or log.checkpoint is None:
        raise NOT_FOUND(
            f"Arrival {number} is not sealed into the log of {address.subject} yet.",
            hint="Ask again after the number of seconds in Retry-After.",
            retry_after=RETRY_SECONDS,
        )
    tiles = await sql.find_tiles(reader, {log.log_id: tiles_for_inclusion(index, log.size)})
    return ProofFile(index, inclusion_proof(index, log.size, tiles[log.log_id]), log.checkpoint, entries[offset]).text


async def read_head_proof(reader: Reader, address: LogAddress) -> str:
    """The proof file of the last head of a log in the head log; its `extra` is the entry. Raises `not_found`."""
    log = await _find_log(reader, address)
    listing = await head_log.find_listed_head(reader, log.log_id)
    if listing is None:
        raise NOT_FOUND(
            f"No head of the log of {address.subject} is in the head log yet.",
            hint="Ask again after the number of seconds in Retry-After.",
            retry_after=RETRY_SECONDS,
        )
    return (await head_log.prove(reader, listing)).text


async def list_keys(reader: Reader) -> dict[str, Any]:
    """The public keys of all logs, oldest first."""
    return {
        "keys": [
            {"public_key": encode_base64(key), "since": timestamp(since)}
            for key, since in await keys.list_public_keys(reader)
        ]
    }


async def _find_log(reader: Reader, address: LogAddress) -> SignedLog:
    log = await sql.find_log(reader, address)
    if log is None:
        raise NOT_FOUND(f"{address.subject.capitalize()} has no public log.", hint="Check the id in the path.")
    if address.generation not in (None, log.generation):
        raise NOT_FOUND(
            f"The log of {address.subject} has no generation {address.generation}.", hint="Leave it out of the path."
        )
    return log


def _unsigned(address: LogAddress) -> Problem:
    return NOT_FOUND(
        f"The log of {address.subject} has no signed entries yet.",
        hint="Ask again after the number of seconds in Retry-After.",
        retry_after=RETRY_SECONDS,
    )


def _no_arrival(address: LogAddress, number: int) -> Problem:
    return NOT_FOUND(f"The log of {address.subject} has no arrival {number}.", hint="Check the number in the path.")
