"""Jobs run by themselves: in a transaction, or in steps of their own where they do work elsewhere too."""

import asyncio

from holdfast.events.resources import Steps, Tx
from holdfast.kit import jobs
from holdfast.kit.jobs import Periodic, in_transaction
from tests.support import Service

EVERY_SECOND = "* * * * * *"


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

    periodic = (Periodic(EVERY_SECOND, in_transaction(in_a_transaction)), Periodic(EVERY_SECOND, in_steps))
    working = asyncio.create_task(jobs.work(service.database, (), periodic))
    async with asyncio.timeout(20):
        await both.wait()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)

    assert set(moments["tx"]) == {True}
    assert set(moments["steps"]) == {False}


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

    async with jobs.opened(service.database.url) as manager:
        failed = await jobs.failed(manager)

    assert len(failed) == jobs.LISTED == 100
    assert [each.id for each in failed] == sorted((each.id for each in failed), reverse=True)
    assert failed[0].arguments.startswith('{"text": "xxx')
    assert {len(each.arguments) for each in failed} == {500}
