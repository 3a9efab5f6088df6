"""A loop makes its steps: after a notice, by time, without waiting for locked rows, and what it opened is closed.

It gives way to requests.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager

from prometheus_client import CollectorRegistry, Gauge

from holdfast.events.resources import Database
from holdfast.kit.background.loops import Loop, LoopStep, RowWaiters
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually

CHANNEL = "loops_tested"
HOUR = 3_600.0


class Steps:
    """Counts the steps of a loop. Each names the next of some seconds, or an hour."""

    def __init__(self, *seconds: float) -> None:
        self.made = 0
        self._seconds = iter(seconds)

    async def step(self, database: Database, locked: RowWaiters) -> float:
        self.made += 1
        return next(self._seconds, HOUR)

    async def made_so_many(self, count: int) -> bool:
        return self.made >= count


def running_loop(loop: Loop, service: Service) -> AbstractAsyncContextManager[None]:
    return run_in_background(loop.run(service.database))


async def test_a_loop_makes_its_next_step_after_the_returned_seconds(service: Service) -> None:
    steps = Steps(0.0, 0.01)

    async with running_loop(Loop("tested", steps.step), service):
        await eventually(lambda: steps.made_so_many(3))


async def test_a_notice_on_any_of_its_channels_causes_the_next_step(service: Service) -> None:
    steps = Steps()

    async with running_loop(Loop("tested", steps.step, (CHANNEL, f"{CHANNEL}_too")), service):
        await eventually(lambda: steps.made_so_many(1))
        for channel in (CHANNEL, f"{CHANNEL}_too") * 2:  # a new connection causes a step, too
            made = steps.made
            await service.database.transact(lambda tx, channel=channel: tx.notify(channel))
            await eventually(lambda made=made: steps.made_so_many(made + 1))


async def test_a_notice_that_comes_during_a_step_causes_another_one(service: Service) -> None:
    steps = Steps()

    async def notify_first(database: Database, locked: RowWaiters) -> float:
        if not steps.made:
            await database.transact(lambda tx: tx.notify(CHANNEL))
        return await steps.step(database, locked)

    async with running_loop(Loop("tested", notify_first, (CHANNEL,)), service):
        await eventually(lambda: steps.made_so_many(2))


async def test_a_loop_goes_on_while_a_locked_row_has_a_waiter_and_at_once_when_that_has_ended(service: Service) -> None:
    steps, is_free, done = Steps(0.0), asyncio.Event(), list[int]()

    async def work() -> None:
        await is_free.wait()
        done.append(7)

    async def leave_locked(database: Database, locked: RowWaiters) -> float:
        if not steps.made:
            locked.leave(7, work)
        return await steps.step(database, locked)

    async with running_loop(Loop("tested", leave_locked), service):
        await eventually(lambda: steps.made_so_many(2))
        assert done == []
        is_free.set()
        await eventually(lambda: steps.made_so_many(3))
        assert done == [7]


async def test_a_resource_of_a_loop_is_opened_once_and_closed_at_its_end(service: Service) -> None:
    steps, happened = Steps(0.0, 0.0), list[str]()

    @contextlib.asynccontextmanager
    async def begin(_: Database) -> AsyncGenerator[LoopStep]:
        happened.append("opened")
        try:
            yield steps.step
        finally:
            happened.append("closed")

    async with running_loop(Loop("tested", open_step=begin), service):
        await eventually(lambda: steps.made_so_many(3))
        assert happened == ["opened"]

    assert happened == ["opened", "closed"]


async def test_gauges_of_a_loop_that_ends_or_fails_are_zero(service: Service) -> None:
    gauge = Gauge("tested", "A figure that a loop sets.", registry=CollectorRegistry())

    async def fail(_: Database, __: RowWaiters) -> float:
        gauge.set(7)
        raise RuntimeError("no step is made")

    [error] = await asyncio.gather(Loop("tested", fail, gauges=(gauge,)).run(service.database), return_exceptions=True)

    assert isinstance(error, RuntimeError)
    [[value]] = [metric.samples for metric in gauge.collect()]
    assert value.value == 0
