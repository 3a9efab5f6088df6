"""Frequent statements are prepared, in each session once, also when they come in transactions that fail."""

from typing import Any

import pytest

from holdfast.kit.contract.problems import Problem
from holdfast.kit.postgres.database import Tx
from tests.helpers.events_service import Service
from tests.helpers.locked_rows import hold_locks
from tests.kit.box_table import box_contents

FILL = "update boxes set content = content + 1 where id = %(box)s"
THRESHOLD = 5
"""How often a statement is run before psycopg prepares it."""


async def test_a_statement_that_would_have_been_prepared_after_an_error_works_in_the_next_transaction(
    boxes: Service,
) -> None:
    async def fill(tx: Tx[Any]) -> None:
        await tx.run(FILL, {"box": 2})

    async def fill_after_an_error(tx: Tx[Any]) -> None:
        await tx.run("set local lock_timeout = '10ms'")
        await tx.run("select from boxes where id = 1 for update")
        await fill(tx)

    database = boxes.database
    sessions = database.pool.get_stats()["pool_size"]
    for _ in range(THRESHOLD * sessions):
        await database.transact(fill)
    async with hold_locks(database.url, "select from boxes where id = 1 for update"):
        for _ in range(sessions):
            with pytest.raises(Problem, match="Another caller is still changing the same thing"):
                await database.transact(fill_after_an_error)

    for _ in range(sessions):
        await database.transact(fill)

    assert await box_contents(boxes) == [0, (THRESHOLD + 1) * sessions]
