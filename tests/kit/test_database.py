"""Transactions are retried whole, notifications reach everybody, and an unreachable database is a 503."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from psycopg import InternalError, errors

from holdfast.events.settings import Settings
from holdfast.kit.database import ATTEMPTS, Database, Tx
from holdfast.kit.problems import NOT_FOUND, Problem
from tests.support import Service, eventually

Heard = asyncio.Queue[str]


@pytest.fixture
async def boxes(service: Service) -> Service:
    """A service whose database has two empty boxes to fight over."""
    await service.run_sql("create table boxes (id int primary key, content int not null default 0)")
    await service.run_sql("insert into boxes values (1), (2)")
    return service


async def contents(service: Service) -> list[int]:
    return [content for (content,) in await service.run_sql("select content from boxes order by id")]


async def put(tx: Tx[Settings], box: int) -> None:
    await tx.value("update boxes set content = content + 1 where id = %(box)s returning id", {"box": box})


@contextlib.asynccontextmanager
async def listening(settings: Settings, *channels: str) -> AsyncGenerator[list[Heard]]:
    """What one more process hears on some channels, once it has begun to listen."""
    database = Database(settings.database_url, settings, size=3, name="tests")
    heard: list[Heard] = [asyncio.Queue() for _ in channels]
    with contextlib.ExitStack() as stack:
        for channel, queue in zip(channels, heard, strict=True):
            stack.enter_context(database.hearing(channel, queue.put_nowait))
        await database.open()
        try:
            assert [await next_of(queue) for queue in heard] == [""] * len(channels)
            yield heard
        finally:
            await database.close()


async def next_of(heard: Heard) -> str:
    async with asyncio.timeout(5):
        return await heard.get()


async def tell(service: Service, channel: str, payload: str) -> None:
    await service.database.transact(lambda tx: tx.notify(channel, payload))


async def cut_off_listeners(service: Service) -> None:
    """End every connection that listens; there is at least one."""
    ended = await service.run_sql(
        """
        select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'tests listener' and datname = current_database()
        """
    )
    assert ended


async def test_the_loser_of_a_deadlock_is_run_again_whole(boxes: Service) -> None:
    both_hold_one = asyncio.Barrier(2)
    runs: list[tuple[int, int]] = []

    async def fill(tx: Tx[Settings], first: int, second: int) -> str:
        runs.append((first, second))
        await tx.run("set local deadlock_timeout = '10ms'")
        await put(tx, first)
        if len(runs) <= 2:
            await both_hold_one.wait()
        await put(tx, second)
        return "filled"

    async with asyncio.timeout(20):
        answers = await asyncio.gather(
            boxes.database.transact(lambda tx: fill(tx, 1, 2)), boxes.database.transact(lambda tx: fill(tx, 2, 1))
        )

    assert answers == ["filled", "filled"]
    assert sorted(runs[:2]) == [(1, 2), (2, 1)]
    assert len(runs) == 3
    assert await contents(boxes) == [2, 2]


async def test_a_transaction_that_cannot_be_serialized_is_run_again_and_sees_what_beat_it(boxes: Service) -> None:
    both_have_read = asyncio.Barrier(2)
    seen: list[int] = []

    async def fill(tx: Tx[Settings]) -> None:
        await tx.run("set transaction isolation level repeatable read")
        seen.append(await tx.value("select content from boxes where id = 1"))
        if len(seen) <= 2:
            await both_have_read.wait()
        await put(tx, 1)

    async with asyncio.timeout(20):
        await asyncio.gather(boxes.database.transact(fill), boxes.database.transact(fill))

    assert seen == [0, 0, 1]
    assert await contents(boxes) == [2, 0]


async def test_a_transaction_that_loses_every_time_is_given_up(boxes: Service) -> None:
    runs = 0

    async def lose(tx: Tx[Settings]) -> None:
        nonlocal runs
        runs += 1
        await tx.run("set transaction isolation level repeatable read")
        await tx.value("select content from boxes where id = 1")
        await boxes.run_sql("update boxes set content = content + 10 where id = 1")
        await put(tx, 1)

    with pytest.raises(Problem) as refusal:
        await boxes.database.transact(lose)

    assert (refusal.value.code, refusal.value.retry_after) == ("service_unavailable", 1)
    assert runs == ATTEMPTS
    assert await contents(boxes) == [10 * ATTEMPTS, 0]


async def test_other_errors_are_not_run_again(boxes: Service) -> None:
    runs = 0

    async def repeat_an_id(tx: Tx[Settings]) -> None:
        nonlocal runs
        runs += 1
        await put(tx, 2)
        await tx.run("insert into boxes values (1)")

    with pytest.raises(errors.UniqueViolation):
        await boxes.database.transact(repeat_an_id)

    assert runs == 1
    assert await contents(boxes) == [0, 0]


async def test_a_problem_rolls_back_everything_its_transaction_did(boxes: Service) -> None:
    refusal = NOT_FOUND("There is no box 3.")

    async def look_for_a_third(tx: Tx[Settings]) -> None:
        await put(tx, 1)
        raise refusal

    with pytest.raises(Problem) as raised:
        await boxes.database.transact(look_for_a_third)

    assert raised.value is refusal
    assert await contents(boxes) == [0, 0]


async def test_a_statement_that_fails_on_its_way_undoes_those_before_it(boxes: Service) -> None:
    async def fill(tx: Tx[Settings], last: int) -> None:
        await put(tx, 1)
        await put(tx, 2)
        await tx.run("insert into boxes values (%(last)s)", {"last": last})

    await boxes.database.transact(lambda tx: fill(tx, 3))
    with pytest.raises(errors.UniqueViolation):
        await boxes.database.transact(lambda tx: fill(tx, 3))

    assert await contents(boxes) == [1, 1, 0]


async def test_a_read_keeps_no_transaction_open_between_its_statements(boxes: Service) -> None:
    async def read(tx: Tx[Settings]) -> tuple[int, int]:
        before = await tx.value("select content from boxes where id = 1")
        await boxes.run_sql("update boxes set content = 5 where id = 1")
        return before, await tx.value("select content from boxes where id = 1")

    assert await boxes.database.read(read) == (0, 5)


async def test_a_notification_reaches_every_listener_of_every_process_after_the_commit(
    service: Service, settings: Settings
) -> None:
    async with listening(settings, "doors", "doors") as one, listening(settings, "doors") as other:
        everyone = [*one, *other]

        async def work(tx: Tx[Settings]) -> list[bool]:
            await tx.notify("doors", "open the first")
            await tx.notify("doors", "")
            await tx.value("select pg_sleep(0.05)")
            return [heard.empty() for heard in everyone]

        assert await service.database.transact(work) == [True, True, True]
        for heard in everyone:
            assert [await next_of(heard), await next_of(heard)] == ["open the first", ""]


async def test_the_process_that_notifies_has_heard_it_before_it_answers(service: Service) -> None:
    heard: list[str] = []

    async def work(tx: Tx[Settings]) -> list[str]:
        await tx.notify("doors", "open")
        return list(heard)

    with service.database.hearing("doors", heard.append):
        before_the_commit = await service.database.transact(work)

        assert "open" not in before_the_commit
        assert "open" in heard


async def test_a_transaction_that_is_run_again_notifies_once(boxes: Service, settings: Settings) -> None:
    runs = 0

    async def lose_once(tx: Tx[Settings]) -> None:
        nonlocal runs
        runs += 1
        await tx.run("set transaction isolation level repeatable read")
        await tx.notify("doors", f"run {runs}")
        if runs == 1:
            await boxes.run_sql("update boxes set content = content + 10 where id = 1")
        await put(tx, 1)

    async with listening(settings, "doors") as (heard,):
        await boxes.database.transact(lose_once)
        await tell(boxes, "doors", "done")

        assert [await next_of(heard), await next_of(heard)] == ["run 2", "done"]


async def test_a_notification_stays_on_its_own_channel(service: Service, settings: Settings) -> None:
    async with listening(settings, "doors", "windows") as (doors, windows):
        await tell(service, "doors", "open")
        await tell(service, "windows", "shut")

        assert (await next_of(windows), await next_of(doors)) == ("shut", "open")
        assert (windows.empty(), doors.empty()) == (True, True)


async def test_nobody_hears_of_a_transaction_that_was_rolled_back(service: Service, settings: Settings) -> None:
    async def change_of_mind(tx: Tx[Settings]) -> None:
        await tx.notify("doors", "never mind")
        raise NOT_FOUND()

    mine: list[str] = []
    async with listening(settings, "doors") as (heard,):
        with service.database.hearing("doors", mine.append):
            with pytest.raises(Problem):
                await service.database.transact(change_of_mind)
            await tell(service, "doors", "open")

            assert await next_of(heard) == "open"
            assert "never mind" not in mine


async def test_whoever_has_stopped_listening_hears_nothing_more(service: Service) -> None:
    heard: list[str] = []
    with service.database.hearing("doors", heard.append):
        await tell(service, "doors", "one")
    until_then = list(heard)
    await tell(service, "doors", "two")

    assert "one" in until_then
    assert heard == until_then


async def test_a_listener_that_was_cut_off_comes_back_and_says_that_it_may_have_missed_something(
    service: Service, settings: Settings
) -> None:
    async with listening(settings, "doors", "windows") as (doors, windows):
        await cut_off_listeners(service)

        assert [await next_of(doors), await next_of(windows)] == ["", ""]
        await tell(service, "doors", "open")
        assert await next_of(doors) == "open"


async def test_a_notice_that_is_not_ours_deafens_nobody(service: Service, settings: Settings) -> None:
    async with listening(settings, "doors") as (heard,):
        await service.run_sql("select pg_notify('holdfast', 'hello')")
        await service.run_sql("select pg_notify('holdfast', '')")
        await tell(service, "doors", "open")

        assert await next_of(heard) == "open"


async def test_a_listener_that_fails_deafens_nobody_and_fails_no_transaction(
    boxes: Service, settings: Settings
) -> None:
    def fail(payload: str) -> None:
        raise ValueError(f"cannot read {payload}")

    async def work(tx: Tx[Settings]) -> str:
        await put(tx, 1)
        await tx.notify("doors", "open")
        return "put"

    database = Database(settings.database_url, settings, size=3, name="tests")
    heard: Heard = asyncio.Queue()
    with database.hearing("doors", fail), database.hearing("doors", heard.put_nowait):
        await database.open()
        try:
            assert await next_of(heard) == ""
            assert await database.transact(work) == "put"
            assert [await next_of(heard), await next_of(heard)] == ["open", "open"]
        finally:
            await database.close()
    assert await contents(boxes) == [1, 0]


async def test_a_connection_lost_in_the_middle_is_unavailable_and_nothing_is_stored(boxes: Service) -> None:
    async def lose_the_connection(tx: Tx[Settings]) -> None:
        await put(tx, 1)
        await tx.run("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(Problem) as refusal:
        await boxes.database.transact(lose_the_connection)

    assert (refusal.value.code, refusal.value.status, refusal.value.retry_after) == ("service_unavailable", 503, 1)
    assert await contents(boxes) == [0, 0]
    await boxes.database.transact(lambda tx: put(tx, 1))
    assert await contents(boxes) == [1, 0]


@pytest.fixture
async def unreachable(settings: Settings) -> AsyncIterator[Database[Settings]]:
    """A database at an address where nobody answers."""
    database = Database("postgresql://127.0.0.1:1/nothing", settings, size=3, name="unreachable")
    # Long enough for a connection to be refused; patience is not what is tested here.
    database.pool.timeout = 0.2
    await database.open()
    yield database
    await database.close()


async def test_an_unreachable_database_is_unavailable(unreachable: Database[Settings]) -> None:
    for ask in (unreachable.transact, unreachable.read):
        with pytest.raises(Problem) as refusal:
            await ask(lambda tx: tx.value("select 1"))
        assert (refusal.value.code, refusal.value.status, refusal.value.retry_after) == ("service_unavailable", 503, 1)
        assert "127.0.0.1" not in str(refusal.value.body())


async def test_a_database_that_was_closed_is_unavailable(settings: Settings) -> None:
    database = Database(settings.database_url, settings, size=3, name="tests")
    await database.open()
    await database.close()

    with pytest.raises(Problem) as refusal:
        await database.transact(lambda tx: tx.value("select 1"))
    assert refusal.value.code == "service_unavailable"


async def test_sessions_bound_statements_and_idle_transactions(service: Service) -> None:
    async def limits(tx: Tx[Settings]) -> tuple[str, str, str]:
        return (
            await tx.value("show idle_in_transaction_session_timeout"),
            await tx.value("show statement_timeout"),
            await tx.value("show timezone"),
        )

    assert await service.database.read(limits) == ("10s", "30s", "UTC")


async def test_a_process_that_stalls_in_a_transaction_loses_its_locks(service: Service) -> None:
    held = asyncio.Event()
    cut_off = asyncio.Event()

    async def stall(tx: Tx[Settings]) -> None:
        await tx.run("set local idle_in_transaction_session_timeout = '50ms'")
        await tx.value("select pg_advisory_xact_lock(4711)")
        held.set()
        await cut_off.wait()
        await tx.value("select 1")

    async def lock_is_free() -> bool:
        return await service.database.read(lambda tx: tx.value("select pg_try_advisory_xact_lock(4711)"))

    stalling = asyncio.create_task(service.database.transact(stall))
    await held.wait()
    await eventually(lock_is_free)
    cut_off.set()

    with pytest.raises(Problem) as refused:
        await stalling
    assert refused.value.code == "service_unavailable"


async def test_a_statement_that_takes_too_long_is_said_to(service: Service) -> None:
    async def dawdle(tx: Tx[Settings]) -> None:
        await tx.run("set local statement_timeout = '20ms'")
        await tx.value("select pg_sleep(10)")

    with pytest.raises(Problem) as refused:
        await service.database.transact(dawdle)

    assert (refused.value.code, refused.value.message) == ("service_unavailable", "The database took too long.")


async def test_a_failure_that_was_swallowed_is_no_commit(boxes: Service) -> None:
    async def fill(tx: Tx[Settings]) -> None:
        await put(tx, 1)
        with contextlib.suppress(errors.UniqueViolation):
            await tx.value("insert into boxes values (1) returning 1")

    with pytest.raises(InternalError):
        await boxes.database.transact(fill)

    assert await contents(boxes) == [0, 0]


async def test_a_failure_that_nobody_read_undoes_everything_and_quotes_no_row(boxes: Service) -> None:
    async def fill(tx: Tx[Settings]) -> None:
        await put(tx, 1)
        await tx.run("insert into boxes values (1)")

    with pytest.raises(errors.UniqueViolation) as raised:
        await boxes.database.transact(fill)

    assert "DETAIL" not in str(raised.value)
    assert await contents(boxes) == [0, 0]
