"""The queue of a visitor exists and is kept, as by a foreign key."""

import asyncio

import psycopg
import pytest
from psycopg.errors import ForeignKeyViolation

from tests.helpers.events_service import Service, eventually

JOIN = "insert into queue_visitors (queue_id, visitor_id, ticket) values (%(queue)s, 'ann', 1)"
DELETE = "delete from queues where id = %(queue)s"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (JOIN.replace("%(queue)s", "1000"), "A visitor names queue 1000, which does not exist."),
        (DELETE, "Queue 1 has visitors."),
        ("update queue_visitors set queue_id = 1000", "The key of a row of queue_visitors cannot change."),
        ("update queues set id = default", "The key of a row of queues cannot change."),
    ],
)
async def test_no_statement_can_leave_a_visitor_without_a_queue(service: Service, statement: str, message: str) -> None:
    queue = await (await service.organizer()).create_queue()
    await service.run_sql(JOIN, queue=queue["id"])

    with pytest.raises(ForeignKeyViolation, match=message):
        await service.run_sql(statement, queue=queue["id"])


@pytest.mark.parametrize(("first", "second"), [(JOIN, DELETE), (DELETE, JOIN)])
async def test_a_join_and_the_deletion_of_its_queue_wait_for_each_other(
    service: Service, first: str, second: str
) -> None:
    queue = {"queue": (await (await service.organizer()).create_queue())["id"]}
    connect = psycopg.AsyncConnection.connect
    async with await connect(service.database.url) as one, await connect(service.database.url) as other:
        await one.execute(first.encode(), queue)
        waiting = asyncio.create_task(other.execute(second.encode(), queue))
        await eventually(lambda: service.run_sql("select from pg_locks where not granted"))

        await one.commit()

        with pytest.raises(ForeignKeyViolation):
            await waiting
        await other.rollback()
