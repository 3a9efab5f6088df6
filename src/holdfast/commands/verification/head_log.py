"""Checks the head of a log against the head log of its service, and the cosignatures of witnesses there."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Sequence

from msgspec import Struct, field

from holdfast.commands.verification.log_reader import EarlierHead, SignedHead, open_head, read_entries, saved_head
from holdfast.commands.verification.log_source import (
    HEAD_LOG_PATH,
    LogSource,
    MissingFile,
    VerificationError,
    without_generation,
)
from holdfast.commands.verification.trusted_key import BadSignature, TrustedKey
from holdfast.events.audit.audit import AuditFinding
from holdfast.events.log.entries import timestamp
from holdfast.kit.tlog.cosignature import Cosignature, CosignatureVerifier, find_cosignature
from holdfast.kit.tlog.proof_file import InvalidProofFile, parse_proof_file
from holdfast.kit.tlog.signed_note import Checkpoint, InvalidNote, parse_checkpoint
from holdfast.kit.tlog.tree import (
    TILE_HEIGHT,
    TILE_WIDTH,
    InvalidProof,
    TileId,
    consistency_proof,
    leaf_hash,
    tile_path,
    tiles_for_consistency,
    verify_consistency,
    verify_inclusion,
)

MAX_WAIT_SECONDS = 10
"""Seconds for which a head is waited for that is not in the head log yet. It takes one or two."""


class HeadLogResult(Struct):
    """What was checked, by name, and what is wrong."""

    checked: dict[str, str] = field(default_factory=dict[str, str])
    findings: list[AuditFinding] = field(default_factory=list[AuditFinding])


class ListedHead(Struct):
    """A head of a log that is in the head log: its entry there, and the signed head of the head log."""

    checkpoint: Checkpoint
    entry: int
    head_log: SignedHead


def is_head_log(origin: str) -> bool:
    return without_generation(origin).endswith(HEAD_LOG_PATH)


def parse_witnesses(vkeys: Sequence[str]) -> list[CosignatureVerifier]:
    """The keys of witnesses. Raises `VerificationError`."""
    try:
        return [CosignatureVerifier(vkey) for vkey in vkeys]
    except ValueError as error:
        raise VerificationError(f"The key of the witness cannot be used: {error}") from error


async def check_in_head_log(
    source: LogSource, head: Checkpoint, key: TrustedKey, witnesses: Sequence[CosignatureVerifier]
) -> HeadLogResult:
    """Check that the head log has this head of a log, or a later one that begins with it; and who has cosigned it."""
    try:
        listing = await _wait_for_listed(source, head, key)
        if listing is None:
            message = f"The head of {head.size:,} entries is not in the head log after {MAX_WAIT_SECONDS} seconds."
            return HeadLogResult(findings=[AuditFinding("late", "heads", message)])
        await _check_same_log(source, head, listing.checkpoint)
    except MissingFile:
        missing = [AuditFinding("notice", "witness", "The log shows no proof that its head is in a head log.")]
        return HeadLogResult({"head log": "not checked: the log shows no proof"}, missing if witnesses else [])
    except BadSignature as error:
        return HeadLogResult(findings=[AuditFinding("fraud", "signature", str(error))])
    except (InvalidProof, InvalidNote, InvalidProofFile) as error:
        message = f"The head log does not have this head: {error}"
        return HeadLogResult(findings=[AuditFinding("fraud", "heads", message)])
    result = check_cosignatures(listing.head_log.note, witnesses)
    size = listing.head_log.checkpoint.size
    result.checked = {"head log": f"has this head, entry {listing.entry:,} of {size:,}", **result.checked}
    return result


async def read_listed_heads(source: LogSource, head: Checkpoint, key: TrustedKey) -> list[EarlierHead]:
    """All heads of a log that the head logs of its service have, up to the size of this one.

    Raises `VerificationError`, also if the hashes of a head log are wrong.
    """
    heads: list[EarlierHead] = []
    head_log: LogSource | None = source.head_log()
    while head_log:
        signed = open_head(await head_log.get("checkpoint"), key, "The head of the head log").checkpoint

        def read(index: int, entry: bytes, origin: str = signed.origin) -> None:
            if entry.startswith(f"{head.origin}\n".encode()):
                with contextlib.suppress(InvalidNote):  # the audit of the head log finds it
                    heads.append(saved_head(parse_checkpoint(entry.decode()), f"entry {index} of {origin}"))

        hashes = await read_entries(head_log, signed, [], read)
        if hashes.findings:
            raise VerificationError(f"The head log is wrong: {hashes.findings[0].message}")
        head_log = head_log.earlier(signed.origin)
    return [earlier for earlier in heads if earlier.size <= head.size]


def check_cosignatures(note: str, witnesses: Sequence[CosignatureVerifier]) -> HeadLogResult:
    """Check that all these witnesses have cosigned the head of a head log."""
    result = HeadLogResult()
    for witness in witnesses:
        try:
            cosignature = find_cosignature(note, witness)
        except InvalidNote as error:
            result.findings.append(AuditFinding("fraud", "witness", str(error)))
            continue
        if cosignature is None:
            message = f"{witness.name} has not cosigned the head of the head log."
            result.findings.append(AuditFinding("notice", "witness", message))
        else:
            result.checked[f"witness {witness.name}"] = f"has cosigned the head log at {_time_of(cosignature)}"
    return result


def _time_of(cosignature: Cosignature) -> str:
    try:
        return timestamp(dt.datetime.fromtimestamp(cosignature.timestamp, dt.UTC))
    except (OverflowError, ValueError, OSError):
        return f"second {cosignature.timestamp}"


async def _wait_for_listed(source: LogSource, head: Checkpoint, key: TrustedKey) -> ListedHead | None:
    """The last head of a log that the head log has, when it is at least as large as this one. None: it is not."""
    for attempt in range(MAX_WAIT_SECONDS + 1):
        try:
            listing = open_head_proof(await source.get("head-proof"), head.origin, key)
        except MissingFile as error:
            if not error.comes_later:
                raise
            listing = None
        if listing and listing.checkpoint.size >= head.size:
            return listing
        if attempt < MAX_WAIT_SECONDS:
            await asyncio.sleep(1)
    return None


def open_head_proof(content: bytes, origin: str, key: TrustedKey) -> ListedHead:
    """The head of a log that a proof file proves to be in the head log of the same service.

    Raises `InvalidProofFile`, `InvalidNote`, `InvalidProof` and `VerificationError`.
    """
    proof = parse_proof_file(content.decode(errors="replace"))
    head_log = open_head(proof.checkpoint.encode(), key, "The head of the head log")
    root, size = head_log.checkpoint.root, head_log.checkpoint.size
    if without_generation(head_log.checkpoint.origin) != origin.partition("/log/")[0] + HEAD_LOG_PATH:
        raise InvalidProof(f"The proof is of another log, {head_log.checkpoint.origin}.")
    entry = proof.extra or b""
    verify_inclusion(leaf_hash(entry), proof.index, size, root, proof.hashes)
    head = parse_checkpoint(entry.decode(errors="replace"))
    if head.origin != origin:
        raise InvalidProof(f"The proof is for another log, {head.origin}.")
    return ListedHead(head, proof.index, head_log)


async def _check_same_log(source: LogSource, head: Checkpoint, later: Checkpoint) -> None:
    """Raise `InvalidProof` unless a later head of a log begins with this one."""
    tiles: dict[TileId, bytes] = {}
    for tile in tiles_for_consistency(head.size, later.size):
        width = min(TILE_WIDTH, (later.size >> TILE_HEIGHT * tile.level) - tile.number * TILE_WIDTH)
        tiles[tile] = await source.get(tile_path(*tile, width))
    try:
        proof = consistency_proof(head.size, later.size, tiles)
    except ValueError as error:
        raise InvalidProof("A tile of the log is too short.") from error
    verify_consistency(head.size, later.size, head.root, later.root, proof)
