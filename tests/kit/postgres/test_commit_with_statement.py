"""A transaction whose COMMIT is sent together with its last statement."""

import asyncio
from typing import Any

import pytest
from psycopg import errors

from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.postgres.database import Tx
from tests.helpers.events_service import Service, eventually
from tests.kit.box_table import box_contents

WAITS = """
    select from pg_locks join pg_database on pg_database.oid = pg_locks.database
     where datname = current_database() and locktype = 'advisory' and objid = 4713 and not granted
"""
FILL = "update boxes set content = content + 1 where id = %(box)s returning id, content"


async def fill_and_commit(tx: Tx[Any], box: int = 1) -> list[tuple[Any, ...]]:
    return await tx.tuples_and_commit(FILL, {"box": box})


async def test_the_rows_of_the_last_statement_are_returned_after_the_commit(boxes: Service) -> None:
    stored: list[list[int]] = []

    async def fill(tx: Tx[Any]) -> list[tuple[Any, ...]]:
        rows = await fill_and_commit(tx)
        stored.append(await box_contents(boxes))
        return rows

    assert await boxes.database.transact(fill, can_commit_early=True) == [(1, 1)]
    assert stored == [[1, 0]]


async def test_earlier_statements_are_in_the_same_transaction(boxes: Service) -> None:
    async def fill(tx: Tx[Any]) -> None:
        await tx.run(FILL, {"box": 2})
        await tx.tuples_and_commit("insert into boxes values (1) returning id")

    with pytest.raises(errors.UniqueViolation):
        await boxes.database.transact(fill, can_commit_early=True)

    assert await box_contents(boxes) == [0, 0]


async def test_later_statements_are_in_another_transaction(boxes: Service) -> None:
    async def fill(tx: Tx[Any], last: int) -> None:
        await fill_and_commit(tx)
        await tx.run(FILL, {"box": 2})
        if last == 2:
            raise NOT_FOUND("There is no box 3.")

    with pytest.raises(Problem):
        await boxes.database.transact(lambda tx: fill(tx, 2), can_commit_early=True)
    assert await box_contents(boxes) == [1, 0]

    await boxes.database.transact(lambda tx: fill(tx, 1), can_commit_early=True)
    assert await box_contents(boxes) == [2, 1]


async def test_a_transaction_is_not_committed_early_if_more_statements_follow(boxes: Service) -> None:
    async def fill(tx: Tx[Any]) -> None:
        assert await fill_and_commit(tx) == [(1, 1)]
        raise NOT_FOUND("There is no box 3.")

    with pytest.raises(Problem):
        await boxes.database.transact(fill)

    assert await box_contents(boxes) == [0, 0]


async def test_a_transaction_that_is_not_kept_commits_nothing(boxes: Service) -> None:
    assert await boxes.database.transact(fill_and_commit, is_dry_run=True, can_commit_early=True) == [(1, 1)]

    assert await box_contents(boxes) == [0, 0]


async def test_the_loser_of_a_deadlock_runs_again(boxes: Service) -> None:
    both_hold_one = asyncio.Barrier(2)
    runs: list[tuple[int, int]] = []

    async def fill(tx: Tx[Any], first: int, second: int) -> None:
        runs.append((first, second))
        await tx.run("set local deadlock_timeout = '10ms'")
        await tx.tuples(FILL, {"box": first})
        if len(runs) <= 2:
            await both_hold_one.wait()
        await fill_and_commit(tx, second)

    async with asyncio.timeout(20):
        await asyncio.gather(
            *(
                boxes.database.transact(lambda tx, order=order: fill(tx, *order), can_commit_early=True)
                for order in ((1, 2), (2, 1))
            )
        )

    assert len(runs) >= 3
    assert await box_contents(boxes) == [2, 2]


async def test_notices_are_delivered_once(boxes: Service) -> None:
    delivered: list[str] = []

    async def fill(tx: Tx[Any]) -> None:
        await tx.notify("boxes", "before")
        await fill_and_commit(tx)
        assert delivered == ["before"]
        await tx.notify("boxes", "after")

    with boxes.database.listen("boxes", delivered.append):
        await boxes.database.transact(fill, can_commit_early=True)

        assert delivered == ["before", "after"]


async def test_a_cancelled_wait_does_not_cancel_the_commit(boxes: Service) -> None:
    async def fill(tx: Tx[Any]) -> None:
        await tx.tuples_and_commit(
            "update boxes set content = 1 where id = 1 and pg_advisory_xact_lock(4713) is not null"
        )

    async with boxes.database.transaction() as other:
        await other.value("select pg_advisory_xact_lock(4713)")
        filling = asyncio.create_task(boxes.database.transact(fill, can_commit_early=True))
        await eventually(lambda: boxes.run_sql(WAITS))
        filling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await filling

    await eventually(lambda: _is(boxes, [1, 0]))


async def _is(boxes: Service, expected: list[int]) -> bool:
    return await box_contents(boxes) == expected
