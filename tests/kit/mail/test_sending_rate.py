"""All processes together send at most as many mails a second as the operator has set."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest

from holdfast.events.settings import Settings
from holdfast.kit.mail.sending_rate import take_turn
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.smtp import MailServer
from tests.kit.mail.posting import PEOPLE, has_received, post_mails, run_senders, wait_until_all_ended

MAX_CONNECTIONS = 3


@pytest.fixture
def max_per_second() -> int:
    return 40


@pytest.fixture
async def processes(settings: Settings, server: MailServer, max_per_second: int) -> AsyncGenerator[list[Service]]:
    limited = settings.model_copy(
        update={
            **server.settings,
            "smtp_max_per_second": max_per_second,
            "smtp_max_connections": MAX_CONNECTIONS,
        }
    )
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running_events(limited)) for _ in range(3)]


async def test_turns_that_processes_take_at_the_same_time_never_overlap(processes: list[Service]) -> None:
    [(before,)] = await processes[0].run_sql("select clock_timestamp()")

    await asyncio.gather(
        *(
            process.database.autocommit(lambda writer: take_turn(writer, 1000))
            for process in processes
            for _ in range(100)
        )
    )

    [(after,)] = await processes[0].run_sql("select next_at from mail_rate")
    assert (after - before).total_seconds() >= 0.3


async def test_unused_turns_are_lost(processes: list[Service]) -> None:
    await processes[0].run_sql("update mail_rate set next_at = now() - interval '1 hour'")

    waits = [await processes[0].database.autocommit(lambda writer: take_turn(writer, 1)) for _ in range(3)]

    assert waits[0] <= 0
    assert waits[2] > 0


async def test_three_processes_together_never_send_more_than_the_limit(
    processes: list[Service], server: MailServer, max_per_second: int
) -> None:
    arrivals: list[float] = []
    server.arrived = lambda: arrivals.append(time.monotonic())

    async with run_senders(*processes):
        await post_mails(processes[0], *PEOPLE)
        await wait_until_all_ended(processes[0])

    assert sorted(server.recipients()) == sorted(PEOPLE)
    for first, began in enumerate(arrivals):
        for last in range(first, len(arrivals)):
            # A mail may come later than its turn, on each connection one.
            mails = last - first + 1
            assert mails <= (arrivals[last] - began) * max_per_second + MAX_CONNECTIONS + 1


async def has_no_lease(service: Service) -> bool:
    return await service.run_sql("select count(*) from mail_shares where due_at > clock_timestamp()") == [(0,)]


@pytest.mark.parametrize("max_per_second", [1])
async def test_a_process_that_stops_does_not_wait_for_the_turns_of_its_mails(
    processes: list[Service], server: MailServer, max_per_second: int
) -> None:
    await processes[0].run_sql("update mail_rate set next_at = now()")
    async with run_senders(processes[0]):
        await post_mails(processes[0], *PEOPLE)
        await eventually(lambda: has_received(server, 1))
        await processes[0].run_sql("update mail_rate set next_at = now() + interval '1 hour'")

    assert len(server.received) < len(PEOPLE)
    # A shard that was leased at the moment of the stop is free when its lease ends.
    await eventually(lambda: has_no_lease(processes[0]))
    await processes[0].run_sql("update mail_rate set next_at = now()")
