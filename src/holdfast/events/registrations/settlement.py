"""Settlement: registrations that were accepted get their outcome, strictly in order of arrival.

Any number of processes accept at once and any of them may settle. What keeps the order:

1. An accepting transaction takes the intake lock, shared, before it stamps `received_at`.
2. A settler takes that lock, exclusive, just long enough to read the clock: the *cut*. By then every registration
   stamped before the cut is stored, and whatever is stamped later is later than the cut.
3. It locks the events concerned and gives places to everything up to the cut, in order, in one statement.

So nobody who came later can be seated while somebody earlier is still being stored.
"""

import asyncio
import contextlib

from prometheus_client import Counter

from holdfast.events.registrations import sql
from holdfast.events.settings import Database, Tx

SETTLED = Counter("holdfast_registrations_settled", "Registrations settled.", ["outcome"])

CHANNEL = "registrations_pending"
BATCH = 1000
PATROL_SECONDS = 5
"""How often to look without being told, in case a notification was lost with a connection."""


async def run(database: Database) -> None:
    """Settle whenever registrations are waiting, until cancelled."""
    waiting = asyncio.Event()
    with database.hearing(CHANNEL, lambda _: waiting.set()):
        while True:
            waiting.clear()
            await settle(database)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiting.wait(), PATROL_SECONDS)


async def settle(database: Database, *, batch: int = BATCH) -> int:
    """Settle everything that waits now; how many registrations were settled."""
    total = 0
    while cut := await database.read(sql.cut):
        while outcomes := await database.transact(lambda tx, cut=cut: _settle_batch(tx, cut, batch)):
            for outcome, count in outcomes.items():
                SETTLED.labels(outcome).inc(count)
            total += (settled := sum(outcomes.values()))
            if settled < batch:
                break
    return total


async def _settle_batch(tx: Tx, cut: str, batch: int) -> dict[str, int]:
    events = await sql.lock_events_to_settle(tx, cut, batch)
    return await sql.settle(tx, events, cut, batch) if events else {}
