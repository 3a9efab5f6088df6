"""Waiters do the work for locked rows beside a loop."""

import asyncio

from holdfast.kit.background.loops import MAX_WAITERS, RowWaiters
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE


class HeldRow:
    """A row that is locked until it is let go."""

    def __init__(self) -> None:
        self.is_free = asyncio.Event()
        self.done = 0

    async def work(self) -> None:
        await self.is_free.wait()
        self.done += 1


async def test_a_locked_row_has_one_waiter_and_the_loop_is_woken_at_its_end() -> None:
    row, ended = HeldRow(), asyncio.Event()

    async with RowWaiters(ended.set) as waiters, asyncio.timeout(5):
        for _ in range(2):
            waiters.leave(7, row.work)
        assert waiters.ids == [7]
        row.is_free.set()
        await ended.wait()
        assert waiters.ids == []

    assert row.done == 1


async def test_a_locked_row_without_a_free_waiter_is_left_to_the_loop() -> None:
    rows = [HeldRow() for _ in range(MAX_WAITERS + 1)]
    ended = asyncio.Event()

    async with RowWaiters(ended.set) as waiters, asyncio.timeout(5):
        for id, row in enumerate(rows):
            waiters.leave(id, row.work)
        assert waiters.ids == [*range(MAX_WAITERS)]
        assert waiters.are_busy
        rows[0].is_free.set()
        await ended.wait()
        waiters.leave(MAX_WAITERS, rows[-1].work)
        assert sorted(waiters.ids) == [*range(1, MAX_WAITERS + 1)]


async def test_a_waiter_that_gives_up_makes_room_for_another() -> None:
    ended = asyncio.Event()

    async def give_up() -> None:
        raise SERVICE_UNAVAILABLE()

    async with RowWaiters(ended.set) as waiters, asyncio.timeout(5):
        waiters.leave(7, give_up)
        await ended.wait()
        assert waiters.ids == []


async def test_waiters_end_with_their_loop() -> None:
    row = HeldRow()

    async with RowWaiters(lambda: None) as waiters:
        waiters.leave(7, row.work)
        await asyncio.sleep(0)

    assert waiters.ids == []
    row.is_free.set()
    await asyncio.sleep(0)
    assert row.done == 0
