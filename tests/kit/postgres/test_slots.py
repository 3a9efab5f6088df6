"""Slots: at most so many pieces of work of one owner at once, in order, and none waits for ever."""

import asyncio

import pytest

from holdfast.kit.contract.problems import Problem
from holdfast.kit.running.rate_limits import MAX_WAITING, Slots


async def hold(slots: Slots, owner: str, until: asyncio.Event, began: list[str]) -> None:
    async with slots.of(owner):
        began.append(owner)
        await until.wait()


async def turns() -> None:
    """Let every task that is ready take a few turns."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_each_owner_has_its_own_slots() -> None:
    slots, end, began = Slots(2), asyncio.Event(), list[str]()

    async with asyncio.TaskGroup() as group:
        for owner in ("ada", "ada", "ada", "ben"):
            group.create_task(hold(slots, owner, end, began))
        await turns()
        assert began == ["ada", "ada", "ben"]
        end.set()

    assert began == ["ada", "ada", "ben", "ada"]


async def test_work_that_waits_for_too_long_is_refused_and_takes_no_slot() -> None:
    slots, end, began = Slots(1, patience=0.01), asyncio.Event(), list[str]()
    holding = asyncio.create_task(hold(slots, "ada", end, began))
    await turns()

    with pytest.raises(Problem) as refused:
        async with slots.of("ada"):
            raise AssertionError("there is no slot")
    end.set()
    await holding

    assert (refused.value.code, refused.value.retry_after) == ("service_unavailable", 1)
    async with slots.of("ada"), slots.of("ben"):
        pass


async def test_too_much_work_of_one_owner_is_refused_at_once() -> None:
    slots, end, began = Slots(1), asyncio.Event(), list[str]()
    tasks = [asyncio.create_task(hold(slots, "ada", end, began)) for _ in range(1 + MAX_WAITING)]
    await turns()

    with pytest.raises(Problem, match="waits already"):
        async with slots.of("ada"):
            raise AssertionError("there is no slot")
    async with slots.of("ben"):
        end.set()
    await asyncio.gather(*tasks)

    assert len(began) == 1 + MAX_WAITING
