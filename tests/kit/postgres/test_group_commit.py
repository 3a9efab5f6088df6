"""Many callers, one statement."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import DataError, IntegrityError

from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.postgres.group_commit import SMALL_BATCH_SIZE, Batcher
from tests.helpers.any_bound import ANY_BOUND

Run = Callable[[Sequence[int]], Awaitable[Sequence[int | Problem]]]


class GatedDoubling:
    """Doubles its calls, one batch at a time, each when it is let through."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.arrived = asyncio.Semaphore(0)
        self.passes = asyncio.Semaphore(0)

    async def run(self, calls: Sequence[int]) -> Sequence[int]:
        self.batches.append(list(calls))
        self.arrived.release()
        await self.passes.acquire()
        return [2 * call for call in calls]

    async def has_batch(self) -> None:
        """Wait until one more batch is in flight."""
        async with asyncio.timeout(5):
            await self.arrived.acquire()

    def open(self) -> None:
        """Let every batch through from now on."""
        for _ in range(1000):
            self.passes.release()


def submit(batcher: Batcher[int, int], *calls: int) -> list[asyncio.Task[int]]:
    return [asyncio.create_task(batcher.submit(call)) for call in calls]


async def outcomes(tasks: Sequence[asyncio.Task[int]]) -> list[int | BaseException]:
    async with asyncio.timeout(5):
        return await asyncio.gather(*tasks, return_exceptions=True)


async def turn() -> None:
    """Let every task that is ready take its turn."""
    await asyncio.sleep(0)


def doubling_run(but: Callable[[int], int | Problem] = lambda call: 2 * call) -> Run:
    async def run(calls: Sequence[int]) -> Sequence[int | Problem]:
        return [but(call) for call in calls]

    return run


async def test_calls_that_arrive_while_a_batch_is_in_flight_share_the_next_one() -> None:
    gate = GatedDoubling()
    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run)
    first = submit(batcher, 1)
    await gate.has_batch()
    second = submit(batcher, 2, 3)
    await turn()
    third = submit(batcher, 4)
    await turn()
    gate.open()

    assert await outcomes([*first, *second, *third]) == [2, 4, 6, 8]
    assert gate.batches == [[1], [2, 3, 4]]


async def test_calls_that_are_ready_at_once_share_the_first_batch() -> None:
    gate = GatedDoubling()
    gate.open()
    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run)

    assert await outcomes(submit(batcher, *range(50))) == list(range(0, 100, 2))
    assert gate.batches == [list(range(50))]


async def test_a_batch_holds_no_more_than_its_size_and_keeps_the_order_of_arrival() -> None:
    gate = GatedDoubling()
    gate.open()
    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run, size=3)

    assert await outcomes(submit(batcher, *range(8))) == list(range(0, 16, 2))
    assert gate.batches == [[0, 1, 2], [3, 4, 5], [6, 7]]


async def test_calls_that_come_one_by_one_in_short_succession_share_a_batch_if_they_may_wait() -> None:
    gate = GatedDoubling()
    gate.open()
    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run, collect_seconds=0.5)
    assert await outcomes(submit(batcher, 1)) == [2]

    tasks = submit(batcher, 2)
    for _ in range(10):
        await turn()
    tasks += submit(batcher, 3)

    assert await outcomes(tasks) == [4, 6]
    assert gate.batches == [[1], [2, 3]]


async def test_a_call_waits_for_no_others_if_none_came_before_or_many_at_once() -> None:
    gate = GatedDoubling()
    gate.open()
    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run, collect_seconds=3_600)

    assert await outcomes(submit(batcher, *range(SMALL_BATCH_SIZE))) == [*range(0, 2 * SMALL_BATCH_SIZE, 2)]
    assert await outcomes(submit(batcher, 1)) == [2]
    assert [len(batch) for batch in gate.batches] == [SMALL_BATCH_SIZE, 1]


async def test_one_batch_is_in_flight_at_a_time() -> None:
    gate = GatedDoubling()
    tasks = submit(Batcher[int, int](ANY_BOUND, "test", gate.run, size=1), 1, 2, 3)
    await gate.has_batch()
    for _ in range(10):
        await turn()
    assert len(gate.batches) == 1
    gate.open()
    assert await outcomes(tasks) == [2, 4, 6]


async def test_the_next_batch_is_in_flight_while_answers_are_completed() -> None:
    gate = GatedDoubling()
    gate.open()
    batches_before_completion: list[int] = []

    async def complete(answers: Sequence[int]) -> Sequence[int]:
        batches_before_completion.append(len(gate.batches))
        return [answer + 1 for answer in answers]

    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run, complete=complete, size=2)

    assert await outcomes(submit(batcher, 1, 2, 3)) == [3, 5, 7]
    assert batches_before_completion == [2, 2]


async def test_answers_that_cannot_be_completed_fail_their_own_batch() -> None:
    async def complete(answers: Sequence[int]) -> Sequence[int]:
        if 2 in answers:
            raise RuntimeError("it cannot be completed")
        return answers

    batcher = Batcher[int, int](ANY_BOUND, "test", doubling_run(), complete=complete, size=1)

    [failed, answer] = await outcomes(submit(batcher, 1, 2))
    assert (str(failed), answer) == ("it cannot be completed", 4)


async def test_a_problem_among_the_answers_is_raised_for_its_own_caller_alone() -> None:
    refusal = NOT_FOUND("There is no 2.")
    batcher = Batcher[int, int](ANY_BOUND, "test", doubling_run(lambda call: refusal if call == 2 else 2 * call))

    assert await outcomes(submit(batcher, 1, 2, 3)) == [2, refusal, 6]


@pytest.mark.parametrize("kind", [DataError, IntegrityError])
async def test_a_call_whose_data_breaks_the_statement_fails_alone(kind: type[Exception]) -> None:
    batches: list[list[int]] = []

    async def run(calls: Sequence[int]) -> Sequence[int]:
        batches.append(list(calls))
        if 5 in calls:
            raise kind("5 is not acceptable")
        return [2 * call for call in calls]

    answers = await outcomes(submit(Batcher[int, int](ANY_BOUND, "test", run), *range(8)))

    assert [answer for call, answer in enumerate(answers) if call != 5] == [0, 2, 4, 6, 8, 12, 14]
    assert isinstance(answers[5], kind)
    assert batches == [[*range(8)], [0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [4], [5], [6, 7]]


async def test_an_error_of_another_kind_fails_the_whole_batch_but_not_the_next_one() -> None:
    gate = GatedDoubling()

    async def run(calls: Sequence[int]) -> Sequence[int]:
        answers = await gate.run(calls)
        if 1 in calls:
            raise RuntimeError("the connection is gone")
        return answers

    batcher = Batcher[int, int](ANY_BOUND, "test", run)
    failing = submit(batcher, 1, 2)
    await gate.has_batch()
    later = submit(batcher, 3)
    await turn()
    gate.open()

    assert [str(answer) for answer in await outcomes(failing)] == ["the connection is gone"] * 2
    assert await outcomes(later) == [6]


async def test_a_cancelled_call_is_run_only_if_its_batch_had_begun() -> None:
    gate = GatedDoubling()
    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run)
    in_flight = submit(batcher, 1, 2)
    await gate.has_batch()
    waiting = submit(batcher, 3, 4)
    await turn()
    for gone in (in_flight[0], waiting[0]):
        gone.cancel()
    await turn()
    gate.open()

    assert await outcomes([in_flight[1], waiting[1]]) == [4, 8]
    assert gate.batches == [[1, 2], [4]]
    assert [task.cancelled() for task in (*in_flight, *waiting)] == [True, False, True, False]


async def test_a_failure_of_a_cancelled_call_is_not_reported_as_unread() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    gate = GatedDoubling()

    async def run(calls: Sequence[int]) -> Sequence[int]:
        await gate.run(calls)
        raise RuntimeError("the connection is gone")

    tasks = submit(Batcher[int, int](ANY_BOUND, "test", run), 1, 2)
    await gate.has_batch()
    for task in tasks:
        task.cancel()
    gate.open()

    assert [type(answer) for answer in await outcomes(tasks)] == [asyncio.CancelledError] * 2
    await turn()
    assert reported == []


async def test_a_call_beyond_the_waiting_limit_is_refused_and_waiting_calls_are_served() -> None:
    gate = GatedDoubling()
    batcher = Batcher[int, int](ANY_BOUND, "test", gate.run, max_waiting=2)
    in_flight = submit(batcher, 1)
    await gate.has_batch()
    waiting = submit(batcher, 2, 3)
    await turn()

    with pytest.raises(Problem) as refusal:
        await batcher.submit(4)
    gate.open()

    assert (refusal.value.code, refusal.value.status, refusal.value.retry_after) == ("service_unavailable", 503, 1)
    assert await outcomes([*in_flight, *waiting]) == [2, 4, 6]
    assert await outcomes(submit(batcher, 5)) == [10]


async def test_a_run_with_too_few_answers_fails_the_calls_without_one() -> None:
    async def forgetful(calls: Sequence[int]) -> Sequence[int]:
        return [2 * call for call in calls][:-1]

    answers = await outcomes(submit(Batcher[int, int](ANY_BOUND, "test", forgetful), 1, 2, 3))

    assert isinstance(answers[2], Exception)


@given(calls=st.lists(st.integers(), max_size=60), size=st.integers(1, 12))
def test_every_caller_gets_the_answer_to_its_own_call(calls: list[int], size: int) -> None:
    async def answers() -> list[int | BaseException]:
        batcher = Batcher[int, int](ANY_BOUND, "test", doubling_run(), size=size)
        return await outcomes(submit(batcher, *calls))

    assert asyncio.run(answers()) == [2 * call for call in calls]


@given(calls=st.lists(st.integers(0, 20), max_size=40), bad=st.sets(st.integers(0, 20)), size=st.integers(1, 12))
def test_bad_calls_in_a_batch_fail_and_the_others_never_do(calls: list[int], bad: set[int], size: int) -> None:
    async def run(batch: Sequence[int]) -> Sequence[int]:
        if not bad.isdisjoint(batch):
            raise DataError("not acceptable")
        return [2 * call for call in batch]

    async def answers() -> list[int | BaseException]:
        return await outcomes(submit(Batcher[int, int](ANY_BOUND, "test", run, size=size), *calls))

    answered = asyncio.run(answers())
    assert [isinstance(answer, DataError) for answer in answered] == [call in bad for call in calls]
    assert [answer for answer in answered if not isinstance(answer, DataError)] == [
        2 * call for call in calls if call not in bad
    ]
