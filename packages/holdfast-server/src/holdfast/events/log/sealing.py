"""Sealing: what was written to `log_pending` becomes entries of the logs, hashes in tiles, and signed heads.

Any number of processes may seal. Three steps, each of which may be repeated after a failure, keep a log from ever
having two versions:

1. The transaction of a registration, a join or a change writes what it did to `log_pending`.
2. One transaction at a time turns pending rows into entries, stores tiles and head, and deletes the rows.
3. A head is read in a transaction that stores nothing but waits until all earlier commits are as durable as
   configured. Only then it is signed and shown. The transaction that stores the signed head also writes to
   `log_pending` what the head log gets of it (`head_log.py`).

So what was signed cannot be lost in a failure, and a process that is killed leaves what the next one continues.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from prometheus_client import Counter, Gauge

from holdfast.events.log import head_log, sql
from holdfast.events.log.keys import signing_key
from holdfast.events.log.model import LogHead, PendingRow, UnsignedHead
from holdfast.events.resources import Database, Tx
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.contract.bounds import Bound
from holdfast_verify.formats import entries
from holdfast_verify.formats.signed_note import Checkpoint, Signer
from holdfast_verify.formats.tree import TILE_WIDTH, Appended, append, bundle, leaf_hash, tiles_for_append

SEALED_COUNT = Counter("holdfast_log_entries_sealed", "Entries sealed into public logs.")
OLDEST = Gauge(
    "holdfast_log_pending_oldest_seconds",
    "How long the oldest row waits that is not sealed into its public log.",
    multiprocess_mode="mostrecent",
)

SEAL_INTERVAL_SECONDS = 0.5
"""Seconds of rest when all is sealed: what happens meanwhile shares the next seal."""

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


PublicIds = Mapping[tuple[int, int], str]
"""The public ids that commitments name, by the ids of the event and of the account."""


class SealedRound(NamedTuple):
    """The result of one transaction.

    last_log_id    the last of the logs that were sealed
    entry_count    the number of entries
    is_last        whether no later log has anything pending
    is_full        whether logs that were sealed may have more
    """

    last_log_id: int
    entry_count: int
    is_last: bool
    is_full: bool


async def seal_pending(database: Database, _: RowWaiters) -> float:
    """Seal what is pending, and sign it. Returns the seconds until what is pending then is sealed."""
    seconds, is_unsigned = await database.read(sql.read_work)
    OLDEST.set(seconds or 0)
    has_more = seconds is not None and await seal(database)
    if seconds is not None or is_unsigned:
        await sign(database)
    return 0.0 if has_more else SEAL_INTERVAL_SECONDS


LOOP = Loop("sealing.run", seal_pending, gauges=(OLDEST,))


async def seal(database: Database, *, max_entries: int = MAX_ENTRIES) -> bool:
    """Seal a part of what is pending of each log. Returns whether a log may have more.

    max_entries    entries after which a transaction seals no further rows
    """
    after, has_more, is_last = 0, False, False
    while not is_last:
        sealed_round = await database.transact(partial(_seal_next, after=after, max_entries=max_entries))
        if sealed_round is None:
            break
        SEALED_COUNT.inc(sealed_round.entry_count)
        after, is_last = sealed_round.last_log_id, sealed_round.is_last
        has_more = has_more or sealed_round.is_full
    return has_more


async def wait_for_sealing(tx: Tx) -> None:
    """Wait until no transaction seals that began to before this call. Statements after it see what was sealed."""
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
        await tx.confirm()
    return heads


async def sign_heads(tx: Tx, heads: Sequence[UnsignedHead]) -> None:
    """Sign heads that are durable. A head that is older than the signed one of its log is left out."""
    key = await signing_key(tx)
    checkpoints = [
        (head.log_id, head.size, Signer(head.origin, key).sign(Checkpoint(head.origin, head.size, head.root).text))
        for head in heads
    ]
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
    public_ids = await _find_people(tx, rows, batches)
    turn = _Turn()
    for row in rows:
        batch = batches[row.log_id]
        for number, entry in batch.entries_of(row, public_ids):
            batch.add(entry, number)
            if turn.is_over():
                await asyncio.sleep(0)
    tiles = await sql.find_tiles(
        tx, {batch.head.log_id: tiles_for_append(batch.head.size) for batch in batches.values()}
    )
    appended: dict[int, Appended] = {}
    for log_id, batch in batches.items():
        if batch.head.name.noun != "heads":
            batch.add_seal()
        appended[log_id] = append(batch.head.size, tiles[log_id], batch.leaves)
        if turn.is_over(len(batch.leaves) + TILE_WIDTH):
            await asyncio.sleep(0)
    await _store(tx, batches, appended)
    await sql.delete_pending(tx, rows)
    entry_count = sum(len(batch.leaves) for batch in batches.values())
    is_full = len(rows) == MAX_ROWS or sum(row.entry_count for row in rows) >= max_entries
    return SealedRound(
        max(batches, default=after), entry_count, is_last=not is_full and len(batches) < MAX_LOGS, is_full=is_full
    )


class _Turn:
    """Counts entries, to let other work of the process have its turn in between."""

    def __init__(self) -> None:
        self._count = 0

    def is_over(self, count: int = 1) -> bool:
        self._count += count
        if self._count < MAX_ENTRIES_AT_A_TIME:
            return False
        self._count = 0
        return True


async def _find_people(tx: Tx, rows: Sequence[PendingRow], batches: Mapping[int, "LogBatch"]) -> PublicIds:
    """The public ids of all who arrived at events."""
    people = {
        (event_id, user_id)
        for row in rows
        for event_id in [batches[row.log_id].head.event_id]
        for user_id in row.user_ids or ()
        if event_id is not None
    }
    return await sql.find_public_ids(tx, sorted(people)) if people else {}


async def _store(tx: Tx, batches: Mapping[int, "LogBatch"], appended: Mapping[int, Appended]) -> None:
    tiles = [(log_id, *tile) for log_id, tree in appended.items() for tile in tree.tiles.items()]
    await sql.append_entries(
        tx,
        [
            (log_id, number, part.arrivals_before, bundle(part.entries))
            for log_id, batch in batches.items()
            for number, part in batch.bundles.items()
        ],
    )
    await sql.store_tiles(tx, tiles)
    await sql.store_heads(
        tx,
        [
            (log_id, batch.origin, appended[log_id].size, appended[log_id].root, batch.arrivals)
            for log_id, batch in batches.items()
        ],
    )


class BundlePart(NamedTuple):
    """Entries for the end of a bundle, and the number of the last arrival before them."""

    arrivals_before: int
    entries: list[bytes]


class LogBatch:
    """The entries that one transaction adds to a log.

    bundles    the entries, by the number of their bundle
    leaves     their hashes
    arrivals   the number of the last arrival
    """

    def __init__(self, head: LogHead, base_url: str) -> None:
        self.head = head
        self.origin = head.origin or head.name.origin(base_url)
        self.bundles: dict[int, BundlePart] = {}
        self.leaves: list[bytes] = []
        self.arrivals = head.arrivals
        self._subject = head.name.subject
        self._cut: Any = None

    def add(self, entry: bytes, number: int | None = None) -> None:
        """Add an entry; with its number, if it is an arrival."""
        place = (self.head.size + len(self.leaves)) // TILE_WIDTH
        if place not in self.bundles:
            self.bundles[place] = BundlePart(self.arrivals, [])
        self.bundles[place].entries.append(entry)
        self.leaves.append(leaf_hash(entry))
        self.arrivals = self.arrivals if number is None else number

    def add_seal(self) -> None:
        """Add the last entry of the batch."""
        self.add(entries.entry("seal", self.head.now, {"cut": self._cut}))

    def entries_of(self, row: PendingRow, public_ids: PublicIds) -> Iterator[tuple[int | None, bytes]]:
        """The entries that a pending row makes, each with its number if it is an arrival.

        public_ids    those in the commitments, by event and account; accounts that are gone are missing
        """
        if row.numbers is not None:
            for number, outcome in zip(row.numbers, row.outcomes or (), strict=True):
                yield None, entries.place(number, row.at, outcome)
            return
        if row.details is None:
            self._cut = row.cut or self._cut
            yield from self._arrivals_of(row, public_ids)
            return
        members = dict(row.details)
        if row.kind == "head":
            yield None, members["text"].encode()
            return
        if row.kind == "open":
            members |= {"format": entries.FORMAT, "origin": self.origin}
            self.arrivals = members["first_number"] - 1
        yield None, entries.entry(row.kind, row.at, members)

    def _arrivals_of(self, row: PendingRow, public_ids: PublicIds) -> Iterator[tuple[int, bytes]]:
        assert row.first_number is not None
        assert row.received_at is not None
        assert row.nonces is not None
        event_id = self.head.event_id or 0
        people = row.visitor_ids or [public_ids.get((event_id, user_id)) for user_id in row.user_ids or ()]
        for index, (at, person, nonce) in enumerate(zip(row.received_at, people, row.nonces, strict=True)):
            number = row.first_number + index
            outcome = row.outcomes[index] if row.outcomes else None
            yield number, entries.arrival(number, at, self._commitment(person, nonce), outcome)

    def _commitment(self, person: str | None, nonce: str | None) -> bytes:
        """The commitment of a person. Of an account that is gone, nothing opens it."""
        if nonce is None and person is not None and self.head.event_id is not None:
            return entries.parse_commitment(person)  # `hide_pending_arrivals` has written it
        if nonce is None or person is None:
            return entries.nobody_commitment()
        return entries.commitment(self._subject, person, bytes.fromhex(nonce.replace("-", "")))
