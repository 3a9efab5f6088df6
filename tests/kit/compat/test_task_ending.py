"""Ending tasks: those that go on after a cancellation are cancelled again."""

import asyncio

import pytest

from holdfast.kit.compat import task_ending
from holdfast.kit.compat.task_ending import end_tasks


async def forever() -> None:
    await asyncio.Event().wait()


async def test_ended_tasks_are_all_cancelled_when_the_call_returns() -> None:
    tasks = [asyncio.create_task(forever()) for _ in range(3)]

    await end_tasks(tasks)

    assert all(task.cancelled() for task in tasks)


async def test_a_task_that_lost_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_ending, "CANCEL_RETRY_SECONDS", 0.01)
    lost = 0

    async def loses_two() -> None:
        nonlocal lost
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                lost += 1
                if lost > 2:
                    raise

    task = asyncio.create_task(loses_two())
    await asyncio.sleep(0)

    await end_tasks([task])

    assert task.cancelled()
    assert lost == 3


async def test_a_task_that_fails_at_its_end_has_ended() -> None:
    async def fails() -> None:
        try:
            await forever()
        finally:
            raise ValueError("not saved")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)

    await end_tasks([task])

    assert isinstance(task.exception(), ValueError)


def test_ending_no_tasks_returns_at_once() -> None:
    with pytest.raises(StopIteration):
        end_tasks([]).send(None)
