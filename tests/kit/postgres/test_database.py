"""Transactions are retried whole, and a database that cannot be reached, or not in time, is a 503."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import InternalError, errors

from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.postgres.database import MAX_ATTEMPTS, Database, Reader, Tx
from tests.helpers.events_service import Service, eventually
from tests.kit.box_table import box_contents, put_into_box


async def test_the_loser_of_a_deadlock_is_run_again_whole(boxes: Service) -> None:
    both_hold_one = asyncio.Barrier(2)
    runs: list[tuple[int, int]] = []

    async def fill(tx: Tx[Any], first: int, second: int) -> str:
        runs.append((first, second))
        await tx.run("set local deadlock_timeout = '10ms'")
        await put_into_box(tx, first)
        if len(runs) <= 2:
            await both_hold_one.wait()
        await put_into_box(tx, second)
        return "filled"

    async with asyncio.timeout(20):
        answers = await asyncio.gather(
            boxes.database.transact(lambda tx: fill(tx, 1, 2)), boxes.database.transact(lambda tx: fill(tx, 2, 1))
        )

    assert answers == ["filled", "filled"]
    assert sorted(runs[:2]) == [(1, 2), (2, 1)]
    # If the loser is quicker than the one it has made way for, they deadlock again.
    assert len(runs) >= 3
    assert await box_contents(boxes) == [2, 2]


async def test_a_transaction_that_cannot_be_serialized_is_run_again_and_sees_what_beat_it(boxes: Service) -> None:
    both_have_read = asyncio.Barrier(2)
    seen: list[int] = []

    async def fill(tx: Tx[Any]) -> None:
        await tx.run("set transaction isolation level repeatable read")
        seen.append(await tx.value("select content from boxes where id = 1"))
        if len(seen) <= 2:
            await both_have_read.wait()
        await put_into_box(tx, 1)

    async with asyncio.timeout(20):
        await asyncio.gather(boxes.database.transact(fill), boxes.database.transact(fill))

    assert seen == [0, 0, 1]
    assert await box_contents(boxes) == [2, 0]


async def test_a_transaction_that_loses_every_time_is_given_up(boxes: Service) -> None:
    runs = 0

    async def lose(tx: Tx[Any]) -> None:
        nonlocal runs
        runs += 1
        await tx.run("set transaction isolation level repeatable read")
        await tx.value("select content from boxes where id = 1")
        await boxes.run_sql("update boxes set content = content + 10 where id = 1")
        await put_into_box(tx, 1)

    with pytest.raises(Problem) as refusal:
        await boxes.database.transact(lose)

    assert (refusal.value.code, refusal.value.retry_after) == ("service_unavailable", 1)
    assert runs == MAX_ATTEMPTS
    assert await box_contents(boxes) == [10 * MAX_ATTEMPTS, 0]


async def test_a_transaction_with_an_error_that_no_retry_helps_is_run_once(boxes: Service) -> None:
    runs = 0

    async def repeat_an_id(tx: Tx[Any]) -> None:
        nonlocal runs
        runs += 1
        await put_into_box(tx, 2)
        await tx.run("insert into boxes values (1)")

    with pytest.raises(errors.UniqueViolation):
        await boxes.database.transact(repeat_an_id)

    assert runs == 1
    assert await box_contents(boxes) == [0, 0]


async def test_a_problem_rolls_back_everything_its_transaction_did(boxes: Service) -> None:
    refusal = NOT_FOUND("There is no box 3.")

    async def look_for_a_third(tx: Tx[Any]) -> None:
        await put_into_box(tx, 1)
        raise refusal

    with pytest.raises(Problem) as raised:
        await boxes.database.transact(look_for_a_third)

    assert raised.value is refusal
    assert await box_contents(boxes) == [0, 0]


async def test_a_statement_that_fails_on_its_way_undoes_those_before_it(boxes: Service) -> None:
    async def fill(tx: Tx[Any], last: int) -> None:
        await put_into_box(tx, 1)
        await put_into_box(tx, 2)
        await tx.run("insert into boxes values (%(last)s)", {"last": last})

    await boxes.database.transact(lambda tx: fill(tx, 3))
    with pytest.raises(errors.UniqueViolation):
        await boxes.database.transact(lambda tx: fill(tx, 3))

    assert await box_contents(boxes) == [1, 1, 0]


async def test_statements_are_sent_at_once_even_while_turns_of_the_event_loop_are_long(boxes: Service) -> None:
    turns = 0

    def take_long() -> None:
        nonlocal turns, turn
        turns += 1
        until = time.monotonic() + 0.01  # longer than the driver lets others wait
        while time.monotonic() < until:
            pass
        turn = loop.call_soon(take_long)

    async def send(tx: Tx[Any]) -> int:
        before = turns
        await tx.run("select pg_advisory_xact_lock(4711)")
        await tx.run("select 1")
        return turns - before

    loop = asyncio.get_running_loop()
    turn = loop.call_soon(take_long)
    for _ in range(3):
        await asyncio.sleep(0)
    turns_of_sending = await boxes.database.transact(send)
    turn.cancel()

    assert turns_of_sending == 0


async def test_a_read_keeps_no_transaction_open_between_its_statements(boxes: Service) -> None:
    async def read(reader: Reader[Any]) -> tuple[int, int]:
        before = await reader.value("select content from boxes where id = 1")
        await boxes.run_sql("update boxes set content = 5 where id = 1")
        return before, await reader.value("select content from boxes where id = 1")

    assert await boxes.database.read(read) == (0, 5)


async def test_a_connection_lost_in_the_middle_is_unavailable_and_nothing_is_stored(boxes: Service) -> None:
    async def lose_the_connection(tx: Tx[Any]) -> None:
        await put_into_box(tx, 1)
        await tx.run("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(Problem) as refusal:
        await boxes.database.transact(lose_the_connection)

    assert (refusal.value.code, refusal.value.status, refusal.value.retry_after) == ("service_unavailable", 503, 1)
    assert await box_contents(boxes) == [0, 0]
    await boxes.database.transact(lambda tx: put_into_box(tx, 1))
    assert await box_contents(boxes) == [1, 0]


@pytest.fixture
async def unreachable(settings: Settings) -> AsyncIterator[Database[Any]]:
    """A database at an address where nobody answers."""
    database = Database("postgresql://127.0.0.1:1/nothing", settings, size=3, name="unreachable")
    # Long enough for a connection to be refused; patience is not what is tested here.
    database.pool.timeout = 0.2
    await database.open()
    yield database
    await database.close()


async def test_an_unreachable_database_is_answered_with_503(unreachable: Database[Any]) -> None:
    for ask in (unreachable.transact, unreachable.read):
        with pytest.raises(Problem) as refusal:
            await ask(lambda tx: tx.value("select 1"))
        assert (refusal.value.code, refusal.value.status, refusal.value.retry_after) == ("service_unavailable", 503, 1)
        assert "127.0.0.1" not in str(refusal.value.body())


async def test_a_closed_database_is_answered_with_503(settings: Settings) -> None:
    database = Database(settings.database_url, settings, size=3, name="tests")
    await database.open()
    await database.close()

    with pytest.raises(Problem) as refusal:
        await database.transact(lambda tx: tx.value("select 1"))
    assert refusal.value.code == "service_unavailable"


async def test_sessions_bound_statements_and_idle_transactions(service: Service) -> None:
    async def limits(reader: Reader[Any]) -> tuple[str, str, str]:
        return (
            await reader.value("show idle_in_transaction_session_timeout"),
            await reader.value("show statement_timeout"),
            await reader.value("show timezone"),
        )

    assert await service.database.read(limits) == ("10s", "30s", "UTC")


@pytest.mark.parametrize("is_read", [True, False], ids=["an answer was read", "no answer was read"])
async def test_a_process_that_stalls_in_a_transaction_loses_its_locks_and_runs_it_again(
    service: Service, is_read: bool
) -> None:
    cut_off = asyncio.Event()
    tries = 0

    async def stall(tx: Tx[Any]) -> None:
        nonlocal tries
        tries += 1
        await tx.run("set local idle_in_transaction_session_timeout = '200ms'")
        await (tx.value if is_read else tx.run)("select pg_advisory_xact_lock(4711)")
        await cut_off.wait()
        await tx.value("select 1")

    async def is_locked() -> bool:
        return bool(await service.run_sql("select from pg_locks where locktype = 'advisory' and objid = 4711"))

    async def is_free() -> bool:
        return not await is_locked()

    stalling = asyncio.create_task(service.database.transact(stall))
    await eventually(is_locked)
    await eventually(is_free)
    cut_off.set()

    await stalling
    assert tries == 2


async def test_a_statement_that_takes_too_long_is_answered_with_503_and_the_reason(service: Service) -> None:
    async def dawdle(tx: Tx[Any]) -> None:
        await tx.run("set local statement_timeout = '20ms'")
        await tx.value("select pg_sleep(10)")

    with pytest.raises(Problem) as refusal:
        await service.database.transact(dawdle)

    assert (refusal.value.code, refusal.value.message) == ("service_unavailable", "The database took too long.")


async def test_a_transaction_with_a_swallowed_failure_is_not_committed(boxes: Service) -> None:
    async def fill(tx: Tx[Any]) -> None:
        await put_into_box(tx, 1)
        with contextlib.suppress(errors.UniqueViolation):
            await tx.value("insert into boxes values (1) returning 1")

    with pytest.raises(InternalError):
        await boxes.database.transact(fill)

    assert await box_contents(boxes) == [0, 0]


async def test_a_transaction_with_an_unread_failure_is_undone_and_quotes_no_row(boxes: Service) -> None:
    async def fill(tx: Tx[Any]) -> None:
        await put_into_box(tx, 1)
        await tx.run("insert into boxes values (1)")

    with pytest.raises(errors.UniqueViolation) as raised:
        await boxes.database.transact(fill)

    assert "DETAIL" not in str(raised.value)
    assert await box_contents(boxes) == [0, 0]
