"""Admission: new work is refused while work in progress waits too long, reads first."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.operations.admission import MAX_RETRY_SECONDS, MIN_IN_PROGRESS, Admission, Priority

MANY = MIN_IN_PROGRESS


class AdmissionScene:
    """An admission with a clock of its own, and work that ends when it is seconds to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.admission = Admission(lambda: self.now)
        self._work = self.admission.counted(self._wait)
        self._waiting: list[asyncio.Future[None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def _wait(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def begin(self, count: int) -> None:
        self._tasks += [asyncio.create_task(self._work()) for _ in range(count)]
        await asyncio.sleep(0)

    async def finish(self, count: int, problem: Problem | None = None) -> None:
        """Finish the oldest work."""
        for future in self._waiting[:count]:
            future.set_exception(problem) if problem else future.set_result(None)
        await asyncio.gather(*self._tasks[:count], return_exceptions=True)
        del self._waiting[:count], self._tasks[:count]

    async def finish_steadily(self, count: int, problem: Problem | None = None) -> None:
        """Finish `count` calls a second for ten seconds."""
        for _ in range(10):
            self.now += 1
            await self.finish(count, problem)

    def refused_priorities(self) -> list[Priority]:
        return [priority for priority in Priority if self.retry_after(priority) is not None]

    def retry_after(self, priority: Priority, tenant: int | None = None) -> int | None:
        try:
            self.admission.require_capacity(priority, tenant)
        except Problem as problem:
            return problem.retry_after
        return None


@pytest.fixture
async def scene() -> AdmissionScene:
    return AdmissionScene()


async def test_reads_are_refused_first_then_changes_then_what_follows_up(scene: AdmissionScene) -> None:
    await scene.begin(MANY)
    order: list[list[Priority]] = []
    for _ in range(9):
        order.append(scene.refused_priorities())
        scene.now += 0.5

    read, change, follow_up = Priority
    assert order == [[], [], *[[read]] * 2, *[[read, change]] * 4, [read, change, follow_up]]


async def test_a_request_is_not_refused_while_little_is_in_progress(scene: AdmissionScene) -> None:
    await scene.begin(MANY - 1)
    scene.now += 3600

    assert scene.refused_priorities() == []


async def test_a_burst_of_work_is_accepted_completely(scene: AdmissionScene) -> None:
    for _ in range(20):
        await scene.begin(MANY)
        scene.now += 0.05
        assert scene.refused_priorities() == []


async def test_refusals_end_when_the_work_is_finished(scene: AdmissionScene) -> None:
    await scene.begin(MANY)
    scene.now += 60
    assert len(scene.refused_priorities()) == 3

    await scene.finish(MANY)
    await scene.begin(MANY)

    assert scene.refused_priorities() == []


async def test_one_long_piece_of_work_gets_no_other_refused(scene: AdmissionScene) -> None:
    await scene.begin(1)
    scene.now += 60
    await scene.begin(10 * MANY)
    scene.now += 0.2

    assert scene.refused_priorities() == []


async def test_refused_clients_get_times_to_return_as_fast_as_work_is_finished(scene: AdmissionScene) -> None:
    await scene.begin(2 * MANY)
    await scene.finish_steadily(20)

    pauses = [scene.retry_after(Priority.READ) for _ in range(100)]

    assert [pauses.count(seconds) for seconds in range(1, 6)] == [20] * 5


async def test_an_idle_hour_before_does_not_slow_the_turns_of_refused_clients(scene: AdmissionScene) -> None:
    await scene.begin(10 * MANY)
    scene.now += 3600
    await scene.finish(1)
    for _ in range(20):
        scene.now += 0.1
        await scene.finish(50)

    assert [scene.retry_after(Priority.READ) for _ in range(300)][-1] == 1


@pytest.mark.parametrize(
    ("problem", "seconds"), [(NOT_FOUND(), 1), (SERVICE_UNAVAILABLE(retry_after=1), MAX_RETRY_SECONDS)]
)
async def test_work_that_failed_for_want_of_room_does_not_count_as_finished(
    scene: AdmissionScene, problem: Problem, seconds: int
) -> None:
    await scene.begin(2 * MANY)
    await scene.finish_steadily(20, problem)

    assert [scene.retry_after(Priority.READ) for _ in range(15)][-1] == seconds


async def test_the_time_to_wait_never_exceeds_its_maximum(scene: AdmissionScene) -> None:
    await scene.begin(MANY)
    scene.now += 10

    assert max(scene.retry_after(Priority.READ) or 0 for _ in range(1000)) == MAX_RETRY_SECONDS


async def test_a_piece_of_work_that_is_cancelled_is_in_progress_no_more(scene: AdmissionScene) -> None:
    work: Callable[[], Awaitable[None]] = scene.admission.counted(asyncio.Event().wait)  # type: ignore[assignment]
    tasks = [asyncio.ensure_future(work()) for _ in range(MANY)]
    await asyncio.sleep(0)
    scene.now += 60
    assert scene.refused_priorities()

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert scene.refused_priorities() == []


async def test_work_that_waits_for_its_own_tenant_gets_only_this_tenant_refused(scene: AdmissionScene) -> None:
    with contextlib.ExitStack() as works:
        for _ in range(MANY):
            works.enter_context(scene.admission.work(7))
        scene.now += 10

        assert scene.retry_after(Priority.FOLLOW_UP, 7) is not None
        assert (scene.retry_after(Priority.READ, 8), scene.retry_after(Priority.READ)) == (None, None)
    assert scene.retry_after(Priority.READ, 7) is None


async def test_work_that_waits_for_one_tenant_gets_no_other_tenant_refused(scene: AdmissionScene) -> None:
    await scene.begin(MANY - 1)
    with scene.admission.work() as work:
        scene.now += 10
        assert scene.refused_priorities() == [*Priority]

        work.move_to_tenant(7)

        assert scene.refused_priorities() == []
    assert scene.admission.in_progress == MANY - 1
