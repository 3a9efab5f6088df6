"""Reads a whole log: its signed head, every entry, and the hashes that lead from each entry to the signed root."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from holdfast_verify.audit.audit import MAX_FINDINGS, AuditFinding
from holdfast_verify.check.log_source import LogSource, MissingFile, VerificationError
from holdfast_verify.check.trusted_key import TrustedKey
from holdfast_verify.formats.signed_note import Checkpoint, parse_checkpoint
from holdfast_verify.formats.tree import (
    HASH_BYTES,
    TILE_BYTES,
    TILE_WIDTH,
    AppendedTree,
    TileId,
    append,
    leaf_hash,
    parse_bundle,
    tile_path,
    tiles_for_append,
    tree_root,
)

MAX_LOG_ENTRIES = 100_000_000
"""The most entries of a log that is read. A head could claim any number, and a server could go on forever."""

MAX_CONCURRENT_REQUESTS = 8
"""Bundles that are fetched at the same time, and so the most that are in memory."""


_MAILED_HEAD = re.compile(r"(.*),\s*([0-9a-f]{4})\s?([0-9a-f]{4})\.?", re.DOTALL)


class SignedHead(NamedTuple):
    """A head whose signature is right, and its note."""

    checkpoint: Checkpoint
    note: str


class EarlierHead(NamedTuple):
    """An earlier head of a log, with which the log must begin.

    name      what it is, as sentences name it
    size      the number of its entries
    digits    how its root begins, in hexadecimal
    """

    name: str
    size: int
    digits: str


def earlier_head_of(head: Checkpoint, name: str = "the saved head") -> EarlierHead:
    """A head that was saved: by an earlier check, or the head log."""
    return EarlierHead(name, head.size, head.root.hex())


def head_in_mail_line(line: str) -> EarlierHead:
    """The head in a line that ends like "18,912 entries, 3f2a 9c1d", in any language. Raises `VerificationError`."""
    match = _MAILED_HEAD.fullmatch(line.strip())
    size = "".join(filter(str.isdecimal, match[1])) if match else ""
    if not match or not size:
        raise VerificationError("The line of the mail ends with a number of entries and two groups of 4 digits.")
    return EarlierHead("the line of the mail", int(size), match[2] + match[3])


class LogEnd(NamedTuple):
    """Up to where a log was read: the number of entries, and the tiles at the right edge of their tree."""

    size: int
    edge: dict[TileId, bytes]


class HashResult(Struct):
    """The result of the check of the hashes.

    end              up to where the log was read
    findings         what is wrong, except with earlier heads
    is_whole         whether the entries lead to the signed root: then they are the ones that were signed
    contradicted     the earlier heads with which the log does not begin, each with what is wrong
    """

    findings: list[AuditFinding]
    end: LogEnd = LogEnd(0, {})
    is_whole: bool = True
    contradicted: dict[EarlierHead, AuditFinding] = field(default_factory=dict[EarlierHead, AuditFinding])


def open_head(note: bytes, key: TrustedKey, subject: str) -> SignedHead:
    """A head, once its signature is right. Raises `VerificationError`."""
    text = note.decode(errors="replace")
    origin = text.partition("\n")[0]
    signed = key.open_note(text, origin, subject)
    try:
        head = SignedHead(parse_checkpoint(signed), text)
    except ValueError as error:
        raise VerificationError(f"{subject} is no checkpoint: {error}") from error
    if head.checkpoint.size > MAX_LOG_ENTRIES:
        raise VerificationError(
            f"{subject} counts {head.checkpoint.size:,} entries. This program reads at most {MAX_LOG_ENTRIES:,}."
        )
    return head


async def read_entries(
    source: LogSource,
    head: Checkpoint,
    earlier_heads: Sequence[EarlierHead],
    read: Callable[[int, bytes], object],
    progress: Callable[[int], object] = lambda count: None,
) -> HashResult:
    """Read every entry in order, and check all hashes. It raises `VerificationError` if a file cannot be read.

    earlier_heads    earlier heads of the same log, with which the log must begin
    read             is called with the index and the text of each entry
    progress         is called with the number of entries of each bundle
    """
    result = HashResult([])
    end = result.end
    unread = deque(sorted(earlier_heads, key=lambda earlier: earlier.size))
    while unread and unread[-1].size > head.size:
        earlier = unread.pop()
        message = f"{_sentence(earlier.name)} has {earlier.size:,} entries, but the log has only {head.size:,} now."
        result.contradicted[earlier] = AuditFinding("fraud", "consistency", message)
    async for entries, leaf_tile in _bundles(source, head.size):
        leaves = [leaf_hash(entry) for entry in entries]
        if b"".join(leaves) != leaf_tile:
            place = next(at for at, leaf in enumerate(leaves) if leaf != leaf_tile[at * HASH_BYTES :][:HASH_BYTES])
            index = end.size + place
            _add(result, "hash", f"Entry {index} is not the one that the tree has in its place.", index)
        for index, entry in enumerate(entries, start=end.size):
            read(index, entry)
        while unread and unread[0].size <= end.size + len(leaves):
            earlier = unread.popleft()
            _check_earlier_head(result, earlier, append(*end, leaves[: earlier.size - end.size]).root)
        appended = append(*end, leaves)
        for tile, content in appended.tiles.items():
            if tile.level and len(content) == TILE_BYTES:
                await _check_tile(source, result, tile, content)
        end = _end_after(end, appended)
        progress(len(entries))
    for tile, content in end.edge.items():
        if tile.level and len(content) < TILE_BYTES:
            await _check_tile(source, result, tile, content)
    result.end = end
    if tree_root(*end) != head.root:
        result.is_whole = False
        _add(result, "hash", "The entries do not lead to the root that the log has signed.")
    return result


async def read_growth(source: LogSource, head: Checkpoint, end: LogEnd, read: Callable[[int, bytes], object]) -> LogEnd:
    """Read what was logged after an end, up to a newer head. Raises `VerificationError` if that does not lead to it."""
    newer = end
    async for bundle_entries, _ in _bundles(source, head.size, first=end.size // TILE_WIDTH):
        entries = bundle_entries[newer.size % TILE_WIDTH :]
        for index, entry in enumerate(entries, start=newer.size):
            read(index, entry)
        newer = _end_after(newer, append(*newer, [leaf_hash(entry) for entry in entries]))
    if head.size < end.size or tree_root(*newer) != head.root:
        raise VerificationError("The newer head of the log does not continue the one that was read.")
    return newer


def _end_after(end: LogEnd, appended: AppendedTree) -> LogEnd:
    """The end of a log to which entries were appended."""
    tiles = {**end.edge, **appended.tiles}
    return LogEnd(appended.size, {tile: tiles[tile] for tile in tiles_for_append(appended.size)})


def _check_earlier_head(result: HashResult, earlier: EarlierHead, root: bytes) -> None:
    if not root.hex().startswith(earlier.digits):
        message = (
            f"The first {earlier.size:,} entries are not the ones of {earlier.name}: the log was rewritten, or forked."
        )
        result.contradicted[earlier] = AuditFinding("fraud", "consistency", message)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _add(result: HashResult, rule: str, message: str, index: int | None = None) -> None:
    if len(result.findings) < MAX_FINDINGS:
        result.findings.append(AuditFinding("fraud", rule, message, index))


async def _check_tile(source: LogSource, result: HashResult, tile: TileId, computed: bytes) -> None:
    """Compare a tile with what follows from the entries."""
    content = await _read_file(source, tile.level, tile.number, len(computed) // HASH_BYTES)
    if content[: len(computed)] != computed:
        name = tile_path(tile.level, tile.number, len(computed) // HASH_BYTES)
        _add(result, "hash", f"{name} has other hashes than the entries lead to.")


async def _bundles(source: LogSource, size: int, first: int = 0) -> AsyncGenerator[tuple[list[bytes], bytes]]:
    """The bundles from the first one, each with the tile of its leaves. The next ones are fetched meanwhile."""
    tasks = deque[asyncio.Task[tuple[list[bytes], bytes]]]()
    numbers = iter(range(first, -(-size // TILE_WIDTH)))

    def begin() -> None:
        if (number := next(numbers, None)) is not None:
            width = min(TILE_WIDTH, size - number * TILE_WIDTH)
            tasks.append(asyncio.create_task(_read_bundle(source, number, width)))

    try:
        for _ in range(MAX_CONCURRENT_REQUESTS):
            begin()
        while tasks:
            bundle = await tasks[0]
            tasks.popleft()
            begin()
            yield bundle
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read_bundle(source: LogSource, number: int, width: int) -> tuple[list[bytes], bytes]:
    content = await _read_file(source, None, number, width)
    tile = await _read_file(source, 0, number, width)
    try:
        entries = parse_bundle(content)[:width]
    except ValueError as error:
        raise VerificationError(f"{tile_path('entries', number, width)} of {source.name}: {error}") from error
    if len(entries) < width or len(tile) < width * HASH_BYTES:
        raise VerificationError(f"Bundle {number} of {source.name} has not the {width} entries that the head counts.")
    return entries, tile[: width * HASH_BYTES]


async def _read_file(source: LogSource, level: int | None, number: int, width: int) -> bytes:
    """A tile, or with level None a bundle. A partial one may be gone when the full one is there."""
    kind = "entries" if level is None else level
    try:
        return await source.get(tile_path(kind, number, width))
    except MissingFile:
        if width == TILE_WIDTH:
            raise
        return await source.get(tile_path(kind, number))
