"""Calls that need a locked row wait for it in a lane; the others of their batch do not."""

import asyncio
from collections.abc import Sequence

import pytest
from psycopg import DataError
from psycopg.errors import LockNotAvailable

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.postgres.group_commit import Batcher, LockedRow
from tests.helpers.any_bound import ANY_BOUND

ODD, TEN = LockedRow("odd", 1), LockedRow("ten", 2)


class LockedDoubling:
    """Doubles its calls. Odd calls need one row, calls from ten need another; both are locked until let go."""

    def __init__(self) -> None:
        self.waited: list[tuple[LockedRow, list[int]]] = []
        self.free = {ODD: asyncio.Event(), TEN: asyncio.Event()}
        self.batcher = Batcher[int, int](ANY_BOUND, "test", self.run, self.wait)

    async def run(self, calls: Sequence[int]) -> Sequence[int | LockedRow]:
        return [self._needs(call) or 2 * call for call in calls]

    async def wait(self, locked: LockedRow, calls: Sequence[int]) -> Sequence[int]:
        self.waited.append((locked, list(calls)))
        await self.free[locked].wait()
        return [2 * call for call in calls]

    def submit(self, *calls: int) -> list[asyncio.Task[int]]:
        return [asyncio.create_task(self.batcher.submit(call)) for call in calls]

    def _needs(self, call: int) -> LockedRow | None:
        needed = TEN if call >= 10 else ODD if call % 2 else None
        return needed if needed and not self.free[needed].is_set() else None


async def answers(tasks: Sequence[asyncio.Task[int]]) -> list[int | BaseException]:
    async with asyncio.timeout(5):
        return await asyncio.gather(*tasks, return_exceptions=True)


async def wait_for_batches(rows: LockedDoubling, batches: int) -> None:
    """Wait until a number of batches wait."""
    async with asyncio.timeout(5):
        while len(rows.waited) < batches:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_calls_that_need_no_locked_row_are_answered_and_each_row_is_waited_for_by_its_own() -> None:
    rows = LockedDoubling()
    tasks = rows.submit(1, 2, 3, 4, 10, 12)

    assert await answers([tasks[1], tasks[3]]) == [4, 8]
    await wait_for_batches(rows, 2)
    assert rows.waited == [(ODD, [1, 3]), (TEN, [10, 12])]
    assert not any(tasks[place].done() for place in (0, 2, 4, 5))

    rows.free[TEN].set()
    assert await answers(tasks[4:]) == [20, 24]
    rows.free[ODD].set()
    assert await answers(tasks) == [2, 4, 6, 8, 20, 24]


async def test_calls_for_a_row_that_is_waited_for_wait_behind_the_earlier_ones() -> None:
    rows = LockedDoubling()
    first = rows.submit(1)
    await wait_for_batches(rows, 1)
    later = rows.submit(3, 5)
    await answers(rows.submit(2))
    assert rows.waited == [(ODD, [1])]

    rows.free[ODD].set()

    assert await answers([*first, *later]) == [2, 6, 10]
    assert rows.waited == [(ODD, [1]), (ODD, [3, 5])]
    assert not rows.batcher._row_batchers  # pyright: ignore[reportPrivateUsage] - nothing is kept of rows that are free


async def test_a_row_that_stays_locked_gets_only_the_calls_that_wait_for_it_refused() -> None:
    refusal = SERVICE_UNAVAILABLE()
    given_up = asyncio.Event()

    async def run(calls: Sequence[int]) -> Sequence[int | LockedRow]:
        return [ODD if call % 2 else 2 * call for call in calls]

    async def wait(locked: LockedRow, calls: Sequence[int]) -> Sequence[int]:
        await given_up.wait()
        raise refusal from LockNotAvailable()

    batcher = Batcher[int, int](ANY_BOUND, "test", run, wait)
    tasks = [asyncio.create_task(batcher.submit(call)) for call in (1, 2)]
    assert await tasks[1] == 4
    tasks += [asyncio.create_task(batcher.submit(call)) for call in (3, 4)]
    assert await tasks[3] == 8
    given_up.set()

    assert await answers(tasks) == [refusal, 4, refusal, 8]
    assert not batcher._row_batchers  # pyright: ignore[reportPrivateUsage] - nothing is kept of it


async def test_a_call_whose_data_breaks_the_statement_while_it_waits_fails_alone() -> None:
    async def run(calls: Sequence[int]) -> Sequence[int | LockedRow]:
        return [ODD for _ in calls]

    async def wait(locked: LockedRow, calls: Sequence[int]) -> Sequence[int]:
        if 5 in calls:
            raise DataError("5 is not acceptable")
        return [2 * call for call in calls]

    batcher = Batcher[int, int](ANY_BOUND, "test", run, wait)
    results = await answers([asyncio.create_task(batcher.submit(call)) for call in range(8)])

    assert [answer for call, answer in enumerate(results) if call != 5] == [0, 2, 4, 6, 8, 12, 14]
    assert isinstance(results[5], DataError)


async def test_a_call_for_which_a_lock_is_not_granted_is_refused_alone() -> None:
    async def run(calls: Sequence[int]) -> Sequence[int]:
        if 5 in calls:
            raise SERVICE_UNAVAILABLE() from LockNotAvailable()
        return [2 * call for call in calls]

    batcher = Batcher[int, int](ANY_BOUND, "test", run)
    results = await answers([asyncio.create_task(batcher.submit(call)) for call in range(8)])

    assert [answer for call, answer in enumerate(results) if call != 5] == [0, 2, 4, 6, 8, 12, 14]
    assert isinstance(results[5], Problem)


async def test_calls_that_wait_for_a_locked_row_count_towards_the_waiting_limit() -> None:
    rows = LockedDoubling()
    rows.batcher = Batcher[int, int](ANY_BOUND, "test", rows.run, rows.wait, max_waiting=2)
    first = rows.submit(1)
    await wait_for_batches(rows, 1)
    later = rows.submit(3, 5)
    for _ in range(5):
        await asyncio.sleep(0)

    with pytest.raises(Problem) as refusal:
        await rows.batcher.submit(2)
    rows.free[ODD].set()

    assert refusal.value.code == "service_unavailable"
    assert await answers([*first, *later]) == [2, 6, 10]
