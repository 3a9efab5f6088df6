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
