"""The loop that attends to shops when their pools or levels change."""

import asyncio
from collections.abc import Collection
from functools import partial

from holdfast.inventory.resources import Database, Steps
from holdfast.inventory.stock.book import CHANGES
from holdfast.inventory.sync import sql
from holdfast.inventory.sync.attending import attend
from holdfast.inventory.sync.levels import CHANNEL
from holdfast.inventory.sync.pushing import Sizes
from holdfast.inventory.sync.sql import Taken
from holdfast.kit.ending import end
from holdfast.kit.limits import Slots
from holdfast.kit.notifications import notified

AT_ONCE = 8
"""The most shops that one process attends to at the same time."""

COLLECT_SECONDS = 0.02
"""How long changes are collected, so that many are looked at together."""

REST_SECONDS = 0.5
"""How long a shop is left alone after its levels were set: what changes meanwhile is set by one call. The same levels
may not be set earlier anyway.
"""

PATROL_SECONDS = 5.0
"""Seconds after which all shops are looked at anyway, in case a notification was lost."""


class Syncing:
    """Attends to the levels of shops."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns = Slots(1)  # transactions of one shop wait for each other anyway
        self._sizes = Sizes()
        self._resting: set[int] = set()

    async def run(self) -> None:
        """Attend to shops when they need it, until cancelled."""
        changed = asyncio.Event()
        called: set[int] = set()
        # A shop may be there twice: with a task that has lost its lease and does not know it yet.
        tasks: dict[asyncio.Task[None], int] = {}
        clock = asyncio.get_running_loop().time
        patrols, patrolled = True, 0.0

        def announced(payload: str) -> None:
            nonlocal patrols
            if payload:
                called.add(int(payload.partition(" ")[0]))
            else:
                patrols = True  # there may have been anything
            changed.set()

        def ended(task: asyncio.Task[None]) -> None:
            # What changed while it was attended to may have come too late for it.
            called.add(tasks.pop(task))
            changed.set()

        with self._database.listen(CHANGES, announced), self._database.listen(CHANNEL, announced):
            try:
                while True:
                    changed.clear()
                    patrol, patrols = patrols, False
                    wanted = None if patrol else called - {*tasks.values()}
                    began = clock()
                    # A task that has just rested is still among the tasks for a moment.
                    free = max(0, AT_ONCE - len(tasks) + len(self._resting))
                    found = await self._take(free, wanted, self._resting)
                    if len(found) < free:
                        called -= wanted or set()
                        patrolled = began if patrol else patrolled
                    else:
                        patrols = patrols or patrol  # there may be more than there was room for
                    for taken in found:
                        task = asyncio.create_task(
                            self._attend_and_rest(taken, changed), name=f"levels of shop {taken.shop_id}"
                        )
                        tasks[task] = taken.shop_id
                        task.add_done_callback(ended)
                    # Without room, a task that ends says when there is some.
                    looks_at = clock() + PATROL_SECONDS
                    if len(found) < free:
                        # Shops that are called all the time put off no patrol.
                        looks_at = patrolled + PATROL_SECONDS
                        soon = await self._database.read(partial(sql.next_due, resting=[*self._resting]))
                        looks_at = looks_at if soon is None else min(clock() + max(soon, 0.01), looks_at)
                    await notified(changed, max(looks_at - clock(), 0.01))
                    await asyncio.sleep(COLLECT_SECONDS)
                    patrols = patrols or clock() >= looks_at
            finally:
                await end(tasks)

    async def attend_all(self) -> int:
        """Attend to every shop that needs it now. Returns how often one did."""
        attended = 0
        while taken := await self._take(AT_ONCE, None):
            await asyncio.gather(*map(self._attend, taken))
            attended += len(taken)
        return attended

    async def _take(self, limit: int, shop_ids: Collection[int] | None, resting: Collection[int] = ()) -> list[Taken]:
        if not limit or (shop_ids is not None and not shop_ids):
            return []
        return await self._database.transact(partial(sql.take, limit=limit, shop_ids=shop_ids, resting=[*resting]))

    async def _attend_and_rest(self, taken: Taken, changed: asyncio.Event) -> None:
        if await self._attend(taken):
            self._resting.add(taken.shop_id)
            changed.set()
            try:
                await asyncio.sleep(REST_SECONDS)
            finally:
                self._resting.discard(taken.shop_id)

    async def _attend(self, taken: Taken) -> bool:
        steps = Steps(self._database, taken.shop_id, self._turns)
        return await attend(steps, taken.shop_id, taken.until, taken.attempts, self._sizes)


forget_lags = sql.forget_lags


async def run(database: Database) -> None:
    """Attend to the levels of shops, until cancelled."""
    await Syncing(database).run()
