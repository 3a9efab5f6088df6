"""Jobs run by themselves: in a transaction, or in steps of their own where they do work elsewhere too."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from holdfast.events.resources import Steps, Tx
from holdfast.kit.background import tasks
from holdfast.kit.background.tasks import Schedule, TimedTask, in_transaction
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually

EVERY_SECOND = Schedule("* * * * * *")


async def test_a_job_with_a_transaction_and_one_without_both_run(service: Service) -> None:
    moments: dict[str, list[bool]] = {}
    both = asyncio.Event()

    async def in_a_transaction(tx: Tx) -> int:
        return done("tx", await tx.value("select now()") == await tx.value("select now()"))

    async def in_steps(steps: Steps) -> int:
        before, after = [await steps.read(lambda reader: reader.value("select now()")) for _ in range(2)]
        return done("steps", before == after)

    def done(name: str, same_moment: bool) -> int:
        moments.setdefault(name, []).append(same_moment)
        if len(moments) == 2:
            both.set()
        return 1

    timed_tasks = (
        TimedTask("in_a_transaction", EVERY_SECOND, in_transaction(in_a_transaction)),
        TimedTask("in_steps", EVERY_SECOND, in_steps),
    )
    async with run_in_background(tasks.run_tasks(service.database, (), timed_tasks)), asyncio.timeout(20):
        await both.wait()

    assert set(moments["tx"]) == {True}
    assert set(moments["steps"]) == {False}


async def test_a_periodic_job_that_fails_is_tried_again_after_a_pause(service: Service) -> None:
    async def fails(_: Steps) -> int:
        raise ValueError

    async def is_put_off() -> bool:
        return bool(
            await service.run_sql(
                "select from procrastinate_jobs where status = 'todo' and attempts = 1 and scheduled_at > now()"
            )
        )

    async with run_in_background(tasks.run_tasks(service.database, (), (TimedTask("fails", EVERY_SECOND, fails),))):
        await eventually(is_put_off)


async def test_the_newest_hundred_jobs_that_failed_are_listed_with_the_beginning_of_their_arguments(
    service: Service,
) -> None:
    await service.run_sql(
        """
        insert into procrastinate_jobs (queue_name, task_name, status, args)
        select 'default', 'post_letter', 'failed', jsonb_build_object('number', number, 'text', repeat('x', 10000))
          from generate_series(1, 250) as number
        """
    )

    async with tasks.open_job_manager(service.database.url) as manager:
        failed = await tasks.failed_jobs(manager)

    assert len(failed) == tasks.MAX_LISTED_JOBS == 100
    assert [job.id for job in failed] == sorted((job.id for job in failed), reverse=True)
    assert failed[0].arguments.startswith('{"text": "xxx')
    assert {len(job.arguments) for job in failed} == {500}


async def test_jobs_that_wait_are_in_the_metrics(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_CONCURRENT_JOBS", 1)
    busy, free = asyncio.Event(), asyncio.Event()

    async def takes_long(_: Steps) -> int:
        busy.set()
        await free.wait()
        return 1

    def waiting() -> float:
        return REGISTRY.get_sample_value("holdfast_due_work_overdue_seconds", {"work": "jobs"}) or 0.0

    async with run_in_background(
        tasks.run_tasks(service.database, (), (TimedTask("takes_long", EVERY_SECOND, takes_long),))
    ):
        async with asyncio.timeout(20):
            await busy.wait()
        await service.run_sql(
            """
            select procrastinate_defer_jobs_v1(array[
                row('default', 'unknown', 0, null, null, '{}'::jsonb, at)::procrastinate_job_to_defer_v1])
              from (values (now() - interval '3 minutes'), (now() + interval '1 day')) as job (at)
            """
        )
        await eventually(lambda: 180 <= waiting() < 240)
        await service.run_sql("update procrastinate_events set at = at - interval '5 minutes'")
        await eventually(lambda: waiting() >= 300)
        free.set()
        await eventually(lambda: waiting() < 60)
