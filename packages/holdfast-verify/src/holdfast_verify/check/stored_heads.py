"""Checks a log against heads of it that were stored elsewhere: in the head log of its service, with the cosignatures of
witnesses there, and in the file of an earlier check. Witnesses may also have cosigned the freeze of a list.
"""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field, structs

from holdfast_verify.audit.audit import AuditFinding, HeadAudit
from holdfast_verify.check.drawn_list import DrawnList
from holdfast_verify.check.generations import (
    LogGeneration,
    ReadLog,
    check_succession,
    find_generations,
    read_log,
)
from holdfast_verify.check.log_reader import EarlierHead, SignedHead, earlier_head_of, open_head
from holdfast_verify.check.log_source import (
    HEAD_LOG_PATH,
    LogSource,
    MissingFile,
    VerificationError,
    generation_of,
    without_generation,
)
from holdfast_verify.check.options import CheckProgress
from holdfast_verify.check.trusted_key import BadSignature, TrustedKey
from holdfast_verify.formats import beacon
from holdfast_verify.formats.cosignature import Cosignature, CosignatureVerifier, find_cosignature
from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.proof_file import InvalidProofFile, parse_proof_file
from holdfast_verify.formats.signed_note import Checkpoint, InvalidNote, encode_base64, parse_checkpoint, parse_note
from holdfast_verify.formats.tree import (
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
"""Seconds to wait for a head that is not in the head log yet. It takes one or two."""


class HeadLogResult(Struct):
    """What was checked, by name, what is wrong, and sentences about what was not checked."""

    checked: dict[str, str] = field(default_factory=dict[str, str])
    findings: list[AuditFinding] = field(default_factory=list[AuditFinding])
    not_checked: list[str] = field(default_factory=list[str])


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
    source: LogSource,
    head: Checkpoint,
    key: TrustedKey,
    witnesses: Sequence[CosignatureVerifier],
    progress: CheckProgress,
) -> HeadLogResult:
    """Check that the head log has this head of a log, or a later one that begins with it; and who has cosigned it."""
    try:
        listing = await _wait_for_listed(source, head, key, progress)
        if listing is None:
            message = f"The head of {head.size:,} entries is not in the head log after {MAX_WAIT_SECONDS} seconds."
            return HeadLogResult(findings=[AuditFinding("late", "heads", message)])
        await _check_same_log(source, head, listing.checkpoint)
    except MissingFile:
        findings = [AuditFinding("notice", "witness", "The log shows no proof that its head is in a head log.")]
        sentence = "The head log was not asked: this log shows no proof that its head is there."
        return HeadLogResult(findings=findings if witnesses else [], not_checked=[sentence])
    except BadSignature as error:
        return HeadLogResult(findings=[AuditFinding("fraud", "signature", str(error))])
    except (InvalidProof, InvalidNote, InvalidProofFile) as error:
        message = f"The head log does not have this head: {error}"
        return HeadLogResult(findings=[AuditFinding("fraud", "heads", message)])
    result = check_cosignatures(listing.head_log.note, witnesses)
    size = listing.head_log.checkpoint.size
    result.checked = {"head log": f"has this head, entry {listing.entry:,} of {size:,}", **result.checked}
    return result


class PublishedHeads(Struct):
    """The heads of the logs of one event or queue that the head logs of the service have.

    heads       by the origin of the log
    findings    what is wrong with the head logs
    """

    heads: dict[str, list[EarlierHead]] = field(default_factory=dict[str, list[EarlierHead]])
    findings: list[AuditFinding] = field(default_factory=list[AuditFinding])

    def up_to(self, log: LogGeneration) -> list[EarlierHead]:
        """The heads of a log that are not larger than it."""
        return [head for head in self.heads.get(log.origin, ()) if head.size <= log.size]

    def largest(self, origin: str) -> EarlierHead | None:
        """The largest head of a log; None: there is none."""
        return max(self.heads.get(origin, ()), key=lambda head: head.size, default=None)


async def read_published_heads(
    source: LogSource, origin: str, key: TrustedKey, progress: CheckProgress
) -> PublishedHeads:
    """All heads of a log, and of the earlier and later ones of its event or queue. The head logs are audited with it.

    Raises `VerificationError`.
    """
    subject = without_generation(origin)
    generations = await find_generations(source.head_log(), key, "The head of the head log")
    published = PublishedHeads(findings=generations.findings)
    logs, heads = list[ReadLog](), dict[str, Checkpoint]()
    for generation in generations.logs:
        audit = HeadAudit(heads)
        add_head = partial(_add_published_head, published, subject, generation.origin)
        logs.append(await read_log(generation, audit, [], progress, add_head))
        heads = audit.heads  # the next audit knows the heads of the earlier head logs
    published.findings += [
        structs.replace(finding, log=log.origin)
        for log in logs
        for finding in (*log.hashes.findings, *log.audit.findings)
    ]
    for before, after in pairwise(logs):
        published.findings += check_succession(before, after).findings
    return published


def _add_published_head(
    published: PublishedHeads, subject: str, head_log: str, index: int, entry: bytes, _: object
) -> None:
    """Add the head in an entry of a head log, if it is of a log of the subject."""
    if not entry.startswith(subject.encode()):
        return
    with contextlib.suppress(InvalidNote, UnicodeDecodeError):  # the audit of the head log reports such an entry
        head = parse_checkpoint(entry.decode())
        if without_generation(head.origin) == subject:
            published.heads.setdefault(head.origin, []).append(earlier_head_of(head, f"entry {index} of {head_log}"))


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


async def _wait_for_listed(
    source: LogSource, head: Checkpoint, key: TrustedKey, progress: CheckProgress
) -> ListedHead | None:
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
            progress.wait(f"Waiting for the head in the head log: {MAX_WAIT_SECONDS - attempt} s left.")
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


NEEDS_EARLIER_HEAD = (
    "only a person who kept a head from before the round can tell whether another list was frozen after it"
)


async def check_freeze_proof(
    source: LogSource, origin: str, drawn_list: DrawnList, key: TrustedKey, witnesses: Sequence[CosignatureVerifier]
) -> HeadLogResult:
    """Compare the freeze of a log with what these witnesses cosigned, and the times with that of the round.

    A log that repeats the freeze of an earlier one has no proof: the earlier one has it.
    """
    if drawn_list.freeze is None or drawn_list.earlier_origin is not None:
        return HeadLogResult()
    try:
        listing = open_head_proof(await source.get("freeze-proof"), origin, key)
        cosigned_at: dict[str, dt.datetime] = {}
        for witness in witnesses:
            cosignature = find_cosignature(listing.head_log.note, witness)
            if cosignature:
                cosigned_at[witness.name] = dt.datetime.fromtimestamp(cosignature.timestamp, dt.UTC)
    except MissingFile:
        findings = [_not_cosigned(witness) for witness in witnesses]
        return HeadLogResult({"freeze": f"no witness cosigned it before the round: {NEEDS_EARLIER_HEAD}"}, findings)
    except (BadSignature, ArithmeticError, OSError, ValueError) as error:
        return HeadLogResult(findings=[AuditFinding("fraud", "draw", f"The proof of the freeze is wrong: {error}")])
    faults = drawn_list.cosignature_faults(listing.checkpoint, cosigned_at)
    if faults:
        return HeadLogResult(findings=[AuditFinding("fraud", "draw", fault) for fault in faults])
    round_at = timestamp(beacon.time_of(drawn_list.freeze.round))
    texts = [f"{witness} cosigned it at {timestamp(at)}" for witness, at in cosigned_at.items()]
    text = f"{', '.join(texts)}, before the round at {round_at}"
    if not witnesses:
        text = "when witnesses cosigned it was not checked: give the key of one as --witness"
    elif not texts:
        text = f"none of these witnesses cosigned it before the round: {NEEDS_EARLIER_HEAD}"
    findings = [_not_cosigned(witness) for witness in witnesses if witness.name not in cosigned_at]
    return HeadLogResult({"freeze": text}, findings)


def _not_cosigned(witness: CosignatureVerifier) -> AuditFinding:
    message = f"{witness.name} has not cosigned before the round that the list was frozen."
    return AuditFinding("notice", "witness", message)


class SavedHead(NamedTuple):
    """The head that an earlier check has saved in a file.

    finding    what is wrong with its signature; None: nothing
    """

    checkpoint: Checkpoint
    finding: AuditFinding | None = None


def read_saved_head(file: Path, key: TrustedKey) -> SavedHead | None:
    """The head in a file; None: there is no file yet. Raises `VerificationError` if it is no head."""
    if not file.exists():
        return None
    text = file.read_bytes().decode(errors="replace")
    try:
        parsed = parse_note(text)
        checkpoint = parse_checkpoint(parsed.text)
    except InvalidNote as error:
        raise VerificationError(f"The head in {file} cannot be read: {error} Name another file for --head.") from error
    try:
        key.open_note(text, checkpoint.origin, f"The head in {file}")
    except BadSignature as error:
        if key.has_signed(text, checkpoint.origin):
            raise VerificationError(f"The head in {file} was altered: {error}") from error
        whose = "that you gave" if key.is_pinned else "that the log serves now"
        message = f"The saved head is not signed with the key {whose}: the key was replaced, or the file is not of it."
        return SavedHead(checkpoint, AuditFinding("fraud", "key", message))
    return SavedHead(checkpoint)


def check_saved_head(saved: Checkpoint, logs: Sequence[ReadLog], *, has_newest: bool) -> list[AuditFinding]:
    """What is wrong with the logs of an event or queue, oldest first, of which a head was saved.

    has_newest    whether the last log is the newest that there is

    Raises `VerificationError` if the head is of another event or queue.
    """
    newest = logs[-1]
    for index, log in enumerate(logs):
        if log.origin == saved.origin:
            contradiction = log.hashes.contradicted.get(earlier_head_of(saved))
            if contradiction is None:
                return []
            is_restored = any(later.audit.earlier_log for later in logs[index + 1 :])
            is_lost = is_restored and saved.size > log.generation.size
            return [_lost_entries(saved, log.generation.size)] if is_lost else [_in_log(contradiction, log, newest)]
    for log in logs:
        if (named := log.audit.earlier_log) and named.origin == saved.origin:
            if saved.size > named.size:
                return [_lost_entries(saved, named.size)]
            if saved.size == named.size and encode_base64(saved.root) != named.root:
                message = f"{log.origin} names another end of {saved.origin} than the saved head has."
                return [AuditFinding("fraud", "consistency", message)]
            return []
    if without_generation(saved.origin) != without_generation(newest.origin):
        raise VerificationError(f"The saved head is of another log, {saved.origin}. Name another file for --head.")
    if generation_of(saved.origin) > generation_of(newest.origin):
        if not has_newest:
            raise VerificationError(
                f"The saved head is of {saved.origin}: give the address of the log without a number."
            )
        message = (
            f"The saved head is of {saved.origin}, a later log than {newest.origin}. The service shows it no more: "
            "it went back to an older copy of its data."
        )
        return [AuditFinding("fraud", "consistency", message)]
    return [AuditFinding("notice", "consistency", f"{saved.origin}, of which the saved head is, could not be read.")]


def check_published_heads(
    published: PublishedHeads, logs: Sequence[LogGeneration], *, has_newest: bool
) -> list[AuditFinding]:
    """What is wrong with logs, judged by their heads in the head log: a head there is larger, or a log is missing.

    has_newest    whether the last log is the newest that there is
    """
    findings = [*published.findings]
    by_origin = {log.origin: log for log in logs}
    oldest = generation_of(logs[0].origin)
    for origin in published.heads:
        largest, log = published.largest(origin), by_origin.get(origin)
        if not has_newest and generation_of(origin) > generation_of(logs[-1].origin):
            continue
        if log is None and largest and generation_of(origin) >= oldest:
            message = (
                f"{largest.name.capitalize()} is a head of {origin} with {largest.size:,} entries. The service shows "
                "that log no more."
            )
            findings.append(AuditFinding("fraud", "heads", message))
        elif log and largest and largest.size > log.size:
            message = (
                f"A head of {largest.size:,} entries was published ({largest.name}), but the log has {log.size:,} now: "
                "the later ones were taken back."
            )
            findings.append(AuditFinding("fraud", "heads", message))
    return findings


def _lost_entries(saved: Checkpoint, size: int) -> AuditFinding:
    message = (
        f"The saved head of {saved.origin} has {saved.size:,} entries, but this log says that the other ended with "
        f"{size:,}: the later ones are lost, as after a restored backup. The saved head proves that there were more."
    )
    return AuditFinding("notice", "consistency", message)


def _in_log(finding: AuditFinding, log: ReadLog, newest: ReadLog) -> AuditFinding:
    return finding if log is newest else structs.replace(finding, log=log.origin)
