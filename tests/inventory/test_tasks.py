"""Transactions of a shop enqueue tasks, which run inside the shop; it cannot read the table of jobs."""

import asyncio

import psycopg
import pytest
from msgspec import Struct

from holdfast.inventory.resources import Tx
from holdfast.kit.background import tasks
from holdfast.kit.background.tasks import TaskHandler
from holdfast.kit.operations.steps import Steps
from holdfast.kit.postgres.transactions import Task
from tests.helpers.background_loops import run_in_background
from tests.helpers.inventory_service import Inventory, Shop


class NoArguments(Struct):
    """Says nothing more."""


COUNT = Task("count_pools", NoArguments)


@pytest.fixture
async def ben(inventory: Inventory) -> Shop:
    ada, ben = await inventory.create_shop(), await inventory.create_shop()
    await ada.create_pool()
    await ben.create_pool()
    await ben.create_pool()
    return ben


async def test_a_task_of_a_shop_sees_rows_of_that_shop_only(inventory: Inventory, ben: Shop) -> None:
    counts: asyncio.Queue[int] = asyncio.Queue()

    async def count(steps: Steps[object], _: NoArguments) -> None:
        counts.put_nowait(await steps.read(lambda reader: reader.value("select count(*) from pools")))

    await inventory.database.transact(lambda tx: tx.enqueue(COUNT, NoArguments()), ben.id)
    async with (
        run_in_background(tasks.run_tasks(inventory.database, [TaskHandler(COUNT, count)], ())),
        asyncio.timeout(20),
    ):
        assert await counts.get() == 2


async def test_a_task_for_a_shop_is_enqueued_by_work_without_a_tenant_but_not_by_another_shop(
    inventory: Inventory, ben: Shop
) -> None:
    await inventory.database.transact(lambda tx: tx.enqueue(COUNT, NoArguments(), tenant=ben.id))
    assert await inventory.sql("select args ->> 'tenant' from procrastinate_jobs") == [(str(ben.id),)]

    with pytest.raises(ValueError, match="no work of another"):
        await inventory.database.transact(lambda tx: tx.enqueue(COUNT, NoArguments(), tenant=ben.id), ben.id + 1)


async def test_the_table_of_jobs_cannot_be_read_or_changed_by_a_shop(inventory: Inventory, ben: Shop) -> None:
    async def enqueue_and_look(tx: Tx) -> None:
        await tx.enqueue(COUNT, NoArguments())
        await tx.tuples("select * from procrastinate_jobs")

    async def delete(tx: Tx) -> None:
        await tx.tuples("delete from procrastinate_jobs returning id")

    for work in (enqueue_and_look, delete):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await inventory.database.transact(work, ben.id)
