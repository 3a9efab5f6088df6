"""Sealing: what was written to `log_pending` becomes entries of the logs, hashes in tiles, and signed heads.

Any number of processes may seal. Three steps, each of which may be repeated after a failure, keep a log from ever
having two versions:

1. The transaction of a registration, a join or a change writes what it did to `log_pending`.
2. One transaction at a time turns pending rows into entries, stores tiles and head, and deletes the rows.
3. A head is signed and shown when the commit of its transaction is confirmed: then it is as durable as configured. The
   transaction that stores the signed head also writes to `log_pending` what the head log gets of it (`head_log.py`).
   A head that another process has left may not be durable yet: it is read in a transaction that stores nothing, but
   waits until all earlier commits are durable.

So what was signed cannot be lost in a failure, and a process that is killed leaves what the next one continues.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client import Counter, Gauge

from holdfast.events.log import head_log, sql
from holdfast.events.log.keys import signing_key
from holdfast.events.log.model import HeadLog, LogHead, PendingRow, SealedHeadLog, UnsignedHead
from holdfast.events.resources import Database, Tx
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.contract.bounds import Bound
from holdfast_verify.formats import entries
from holdfast_verify.formats.tree import TILE_WIDTH, AppendedTree, append, bundle, leaf_hash

SEALED_COUNT = Counter("holdfast_log_entries_sealed", "Entries sealed into public logs.")
OLDEST = Gauge(
    "holdfast_log_pending_oldest_seconds",
    "How long the oldest row waits that is not sealed into its public log.",
    multiprocess_mode="mostrecent",
)

SEAL_INTERVAL_SECONDS = 1.0
"""Seconds of rest when all is sealed: what happens meanwhile shares the next seal.

A seal, its head and their publication cost as much for one arrival as for hundreds."""

MAX_LOGS = 200
"""Logs that one transaction seals, and heads that one transaction signs."""

MAX_ROWS = 500
"""Pending rows that one transaction seals."""

MAX_ENTRIES = 2_000
"""Entries after which a transaction seals no further rows. A row has at most a batch of arrivals, of 1,000."""

SEALED_ROWS = Bound(
    name="Rows that one transaction seals into public logs",
    service="events",
    total=f"{MAX_ROWS} of {MAX_LOGS} logs, none after {MAX_ENTRIES} entries",
    tenant="none: logs in turns",
    address="none",
    reserved="-",
    stranger="Other logs wait for the turns of its logs.",
)

MAX_ENTRIES_AT_A_TIME = 250
"""Entries after which other work of the process gets its turn: one or two milliseconds."""


class SealedRound(NamedTuple):
    """The result of one transaction.

    last_log_id    the last of the logs that were sealed
    entry_count    the number of entries
    heads          the heads of logs
    head_logs      the heads of head logs
    is_last        whether no later log has anything pending
    is_full        whether the round had as much as it can: logs that were sealed may have more
    """

    last_log_id: int
    entry_count: int
    heads: list[UnsignedHead]
    head_logs: list[SealedHeadLog]
    is_last: bool
    is_full: bool


async def seal_pending(database: Database, _: RowWaiters) -> float:
    """Seal what is pending, and sign the heads that are sealed. Returns the seconds until the next seal."""
    seconds, is_unsigned = await database.read(sql.read_work)
    OLDEST.set(seconds or 0)
    has_witnesses = bool(database.resources.settings.log_witness_keys)
    has_more = False
    if seconds is not None:
        async for sealed_round in seal_rounds(database, MAX_ENTRIES):
            await database.transact(partial(_sign_sealed, sealed_round=sealed_round, has_witnesses=has_witnesses))
            has_more = has_more or sealed_round.is_full
    if is_unsigned:  # another process has left it
        await sign(database)
        if not has_witnesses:
            await head_log.publish(database)
    return 0.0 if has_more else SEAL_INTERVAL_SECONDS


LOOP = Loop("sealing.run", seal_pending, gauges=(OLDEST,))


async def seal_rounds(database: Database, max_entries: int) -> AsyncIterator[SealedRound]:
    """Seal a part of what is pending of each log, some logs at a time. What is yielded is durable.

    max_entries    entries after which a transaction seals no further rows
    """
    after, is_last = 0, False
    while not is_last:
        sealed_round = await database.transact(partial(_seal_next, after=after, max_entries=max_entries))
        if sealed_round is None:
            return
        SEALED_COUNT.inc(sealed_round.entry_count)
        after, is_last = sealed_round.last_log_id, sealed_round.is_last
        yield sealed_round


async def wait_for_sealing(tx: Tx) -> None:
    """Wait for a transaction that was sealing when this was called. Statements after it see what was sealed."""
    await tx.run("savepoint sealing")
    await tx.run("select pg_advisory_xact_lock(%(lock)s)", {"lock": sql.ADVISORY_LOCK_ID})
    await tx.run("rollback to savepoint sealing")  # releases the lock


async def sign(database: Database) -> int:
    """Sign all heads that are sealed and durable. Returns the number of signed heads."""
    total = 0
    while heads := await database.transact(read_durable_heads):
        await database.transact(partial(sign_heads, heads=heads))
        total += len(heads)
        if len(heads) < MAX_LOGS:
            break
    return total


async def read_durable_heads(tx: Tx) -> list[UnsignedHead]:
    """The next heads to sign. When the transaction has ended, they are as durable as configured."""
    heads = await sql.list_unsigned_heads(tx, MAX_LOGS)
    if heads:
        await tx.wait_for_earlier_commits()
    return heads


async def sign_heads(tx: Tx, heads: Sequence[UnsignedHead]) -> None:
    """Sign heads that are durable. A head that is older than the signed one of its log is left out."""
    await _store_heads(tx, await signing_key(tx), heads)


async def _sign_sealed(tx: Tx, sealed_round: SealedRound, *, has_witnesses: bool) -> None:
    """Sign the heads of a round, those of the head log only if no witness is asked about them before."""
    key = await signing_key(tx)
    for head, indexes in () if has_witnesses else sealed_round.head_logs:
        await head_log.store_checkpoint(tx, head, head_log.sign(head, key), indexes)
    if sealed_round.heads:
        await _store_heads(tx, key, sealed_round.heads)


async def _store_heads(tx: Tx, key: Ed25519PrivateKey, heads: Sequence[UnsignedHead]) -> None:
    checkpoints = [(head.log_id, head.size, head_log.sign(head, key)) for head in heads]
    await sql.store_checkpoints(tx, await head_log.find_head_log(tx), checkpoints)


async def _seal_next(tx: Tx, after: int, max_entries: int) -> SealedRound | None:
    """Seal the oldest pending rows of the next logs after an id. None: there are none, or another process seals."""
    # The lock is a separate statement, so that the next one sees what its last holder has committed.
    if not await sql.lock_sealing(tx):
        return None
    rows = await sql.list_pending(tx, after, max_logs=MAX_LOGS, max_rows=MAX_ROWS, max_entries=max_entries)
    if not rows:
        return None
    heads = await sql.list_heads(tx, sorted({row.log_id for row in rows}))
    # A log that has just been deleted has no head in the list, and its rows are gone too.
    batches = {head.log_id: LogBatch(head, tx.resources.settings.base_url) for head in heads}
    rows = [row for row in rows if row.log_id in batches]
    turn = _YieldCounter()
    for row in rows:
        batch = batches[row.log_id]
        for new_entries, first_number in batch.entries_of(row):
            batch.add(new_entries, first_number)
            if turn.is_over(len(new_entries)):
                await asyncio.sleep(0)
    trees: dict[int, AppendedTree] = {}
    for log_id, batch in batches.items():
        if not batch.is_head_log:
            batch.add_seal()
        trees[log_id] = append(batch.head.size, batch.head.tiles, batch.leaves)
        if turn.is_over(len(batch.leaves) + TILE_WIDTH):
            await asyncio.sleep(0)
    await _store(tx, batches, trees, rows)
    entry_count = sum(len(batch.leaves) for batch in batches.values())
    is_full = len(rows) == MAX_ROWS or sum(row.entry_count for row in rows) >= max_entries
    return SealedRound(
        max(batches, default=after),
        entry_count,
        heads=[
            UnsignedHead(log_id, batch.origin, trees[log_id].size, trees[log_id].root)
            for log_id, batch in batches.items()
            if not batch.is_head_log
        ],
        head_logs=[batch.sealed_head_log(trees[log_id]) for log_id, batch in batches.items() if batch.is_head_log],
        is_last=not is_full and len(batches) < MAX_LOGS,
        is_full=is_full,
    )


class _YieldCounter:
    """Counts entries, to let other work of the process have its turn in between."""

    def __init__(self) -> None:
        self._count = 0

    def is_over(self, count: int) -> bool:
        self._count += count
        if self._count < MAX_ENTRIES_AT_A_TIME:
            return False
        self._count = 0
        return True


async def _store(
    tx: Tx, batches: Mapping[int, "LogBatch"], trees: Mapping[int, AppendedTree], rows: Sequence[PendingRow]
) -> None:
    await sql.store_sealed(
        tx,
        bundles=[
            (log_id, number, part.last_arrival_before, bundle(part.entries))
            for log_id, batch in batches.items()
            for number, part in batch.bundles.items()
        ],
        tiles=[(log_id, *tile) for log_id, tree in trees.items() for tile in tree.tiles.items()],
        heads=[
            (log_id, batch.origin, trees[log_id].size, trees[log_id].root, batch.last_arrival_number)
            for log_id, batch in batches.items()
        ],
        rows=rows,
    )


class BundlePart(NamedTuple):
    """Entries for the end of a bundle, and the number of the last arrival before them."""

    last_arrival_before: int
    entries: list[bytes]


class LogBatch:
    """The entries that one transaction adds to a log.

    bundles                the entries, by the number of their bundle
    leaves                 their hashes
    last_arrival_number    0: there was none
    is_head_log            whether it is a head log, whose batches end without a seal
    """

    def __init__(self, head: LogHead, base_url: str) -> None:
        self.head = head
        self.origin = head.origin or head.name.origin(base_url)
        self.bundles: dict[int, BundlePart] = {}
        self.leaves: list[bytes] = []
        self.last_arrival_number = head.last_arrival_number
        self.is_head_log = head.name.noun == "heads"
        self._subject = head.name.subject
        self._cut: Any = None

    def add(self, new_entries: Sequence[bytes], first_number: int | None = None) -> None:
        """Add entries; if they are arrivals, with the number of the first."""
        count = 0
        while count < len(new_entries):
            bundle_number, width = divmod(self.head.size + len(self.leaves), TILE_WIDTH)
            part = new_entries[count : count + TILE_WIDTH - width]
            if bundle_number not in self.bundles:
                self.bundles[bundle_number] = BundlePart(self.last_arrival_number, [])
            self.bundles[bundle_number].entries.extend(part)
            self.leaves.extend(map(leaf_hash, part))
            count += len(part)
            self.last_arrival_number = self.last_arrival_number if first_number is None else first_number + count - 1

    def add_seal(self) -> None:
        """Add the last entry of the batch."""
        self.add([entries.entry("seal", self.head.now, {"cut": self._cut})])

    def entries_of(self, row: PendingRow) -> Iterator[tuple[list[bytes], int | None]]:
        """The entries that a pending row makes, some at a time; if they are arrivals, with the number of the first."""
        if row.details is not None:
            yield [self._entry_of(row, row.details)], None
            return
        for start in range(0, row.entry_count, MAX_ENTRIES_AT_A_TIME):
            part = slice(start, start + MAX_ENTRIES_AT_A_TIME)
            if row.numbers is not None:
                places = zip(row.numbers[part], (row.outcomes or ())[part], strict=True)
                yield [entries.place(number, row.at, outcome) for number, outcome in places], None
            else:
                assert row.first_number is not None
                first_number = row.first_number + start
                yield self._arrivals_of(row, part, first_number), first_number
        self._cut = row.cut or self._cut

    def sealed_head_log(self, tree: AppendedTree) -> SealedHeadLog:
        """The head log after this batch."""
        head, indexes = self.head, None
        if head.signed_size == head.size:
            new_entries = (entry for part in self.bundles.values() for entry in part.entries)
            indexes = head_log.indexes_of(new_entries, head.size)
        return SealedHeadLog(
            HeadLog(head.log_id, self.origin, tree.size, tree.root, head.signed_size, checkpoint=None), indexes
        )

    def _entry_of(self, row: PendingRow, details: Mapping[str, Any]) -> bytes:
        if row.kind == "head":
            return details["text"].encode()
        if row.kind == "open":
            self.last_arrival_number = details["first_number"] - 1
            details = {**details, "format": entries.FORMAT, "origin": self.origin}
        return entries.entry(row.kind, row.at, details)

    def _arrivals_of(self, row: PendingRow, part: slice, first_number: int) -> list[bytes]:
        assert row.received_at is not None
        assert row.people is not None
        assert row.nonces is not None
        times = row.received_at[part]
        people = map(self._commitment, row.people[part], row.nonces[part])
        outcomes = row.outcomes[part] if row.outcomes else [None] * len(times)
        numbers = range(first_number, first_number + len(times))
        return list(map(entries.arrival, numbers, times, people, outcomes))

    def _commitment(self, person: str | None, nonce: str | None) -> bytes:
        """The commitment of a person. For an account that no longer exists, it is one that nothing can open."""
        if nonce is None and person is not None and self.head.event_id is not None:
            return entries.parse_commitment(person)  # `hide_pending_arrivals` has written it
        if nonce is None or person is None:
            return entries.nobody_commitment()
        return entries.commitment(self._subject, person, bytes.fromhex(nonce.replace("-", "")))
