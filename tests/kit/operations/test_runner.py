"""Operations run alone in a transaction, in batches with others, or in steps of their own."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg
import pytest

from holdfast.kit.contract.caller import Caller, stranger
from holdfast.kit.contract.command import Command, Repeatable
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.operations.operation import Batch, Operation, batched, read, single, steps
from holdfast.kit.operations.runner import Runner
from holdfast.kit.operations.steps import Conclusion, Steps
from holdfast.kit.postgres.database import Reader, Tx
from tests.helpers.events_service import Service

STRANGER = stranger("address 192.0.2.1")


class Put(Command):
    pages: int


class LookUp(Command):
    """Nothing to say."""


async def put(tx: Tx[Any], caller: Caller, command: Put) -> int:
    """Put a book of this many pages on the shelf, unless it is empty."""
    await tx.run("insert into shelf values (%(pages)s)", {"pages": command.pages})
    if not command.pages:
        raise NOT_FOUND("There is nothing in it.")
    return command.pages


async def put_many(tx: Tx[Any], batch: Batch[Put]) -> Sequence[int | Problem]:
    """Put books on the shelf; an empty one is refused."""
    pages = [call.command.pages for call in batch.calls]
    await tx.run("insert into shelf select unnest(%(pages)s::int[])", {"pages": [count for count in pages if count]})
    together = len(batch.calls)
    return [together if count else NOT_FOUND("There is nothing in it.") for count in pages]


async def is_in_a_transaction(reader: Reader[Any], caller: Caller, command: LookUp) -> bool:
    """Whether one statement after another sees the same moment."""
    return await reader.value("select now()") == await reader.value("select now()")


async def put_between(opened: Steps[Any], caller: Caller, command: Put) -> Conclusion[int]:
    """Put two books on the shelf, one after the other, as if something were asked elsewhere in between."""
    await opened.transact(lambda tx: put(tx, caller, command))

    async def put_another(tx: Tx[Any]) -> int:
        pages = await put(tx, caller, command)
        if pages > 500:
            raise NOT_FOUND("It does not fit.")
        return pages

    return await opened.conclude(put_another)


PUT = Operation("put_book", "POST /books", single(put), body_member="book")
PUT_MANY = Operation("put_books", "POST /many", batched(put_many), body_member="book")
PUT_BETWEEN = Operation("put_two_books", "POST /two", steps(put_between), body_member="book")
READ = Operation("read_shelf", "GET /books", read(is_in_a_transaction))
CHANGE = Operation("change_shelf", "DELETE /books", single(is_in_a_transaction))


@pytest.fixture
async def runner(service: Service) -> Runner:
    await service.run_sql("create table shelf (pages int not null check (pages < 1000))")
    return Runner((PUT, PUT_MANY, PUT_BETWEEN, READ, CHANGE), service.database)


async def shelf(service: Service) -> list[int]:
    return [pages for (pages,) in await service.run_sql("select pages from shelf order by pages")]


async def test_an_operation_is_stored_when_it_answers(runner: Runner, service: Service) -> None:
    assert await runner.run_of(PUT)(STRANGER, Put(pages=7)) == 7
    assert await shelf(service) == [7]


async def test_a_refused_operation_changes_nothing(runner: Runner, service: Service) -> None:
    with pytest.raises(Problem, match="nothing in it"):
        await runner.run_of(PUT)(STRANGER, Put(pages=0))
    assert await shelf(service) == []


async def test_an_operation_that_makes_its_transactions_itself_keeps_what_it_had_done(
    runner: Runner, service: Service
) -> None:
    assert await runner.run_of(PUT_BETWEEN)(STRANGER, Put(pages=7)) == 7
    with pytest.raises(Problem, match="does not fit"):
        await runner.run_of(PUT_BETWEEN)(STRANGER, Put(pages=501))

    assert await shelf(service) == [7, 7, 501]


async def test_callers_who_wait_share_one_run_and_each_gets_its_own_answer(runner: Runner, service: Service) -> None:
    outcomes = await asyncio.gather(
        *(runner.run_of(PUT_MANY)(STRANGER, Put(pages=pages)) for pages in (1, 0, 3)), return_exceptions=True
    )

    assert [outcomes[0], outcomes[2]] == [3, 3]
    assert isinstance(outcomes[1], Problem)
    assert await shelf(service) == [1, 3]


async def test_a_call_the_database_refuses_takes_no_other_call_with_it(runner: Runner, service: Service) -> None:
    outcomes = await asyncio.gather(
        *(runner.run_of(PUT_MANY)(STRANGER, Put(pages=pages)) for pages in (1, 2, 5000, 4)), return_exceptions=True
    )

    assert [isinstance(outcome, int) for outcome in outcomes] == [True, True, False, True]
    assert await shelf(service) == [1, 2, 4]


async def test_reads_run_without_a_transaction_and_changes_in_one(runner: Runner) -> None:
    assert await runner.run_of(READ)(STRANGER, LookUp()) is False
    assert await runner.run_of(CHANGE)(STRANGER, LookUp()) is True


@pytest.mark.parametrize("operation", [PUT, PUT_MANY])
async def test_a_call_that_comes_again_with_its_key_is_done_once(
    runner: Runner, service: Service, operation: Operation
) -> None:
    once = runner.run_of(operation)

    first = await once(STRANGER, Put(pages=7), "K")
    again = await once(STRANGER, Put(pages=7), "K")

    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    assert await shelf(service) == [7]


@pytest.mark.parametrize("operation", [PUT, PUT_MANY])
async def test_a_call_that_was_refused_is_done_when_it_comes_again_with_its_key(
    runner: Runner, service: Service, operation: Operation
) -> None:
    once = runner.run_of(operation)
    for _ in range(2):
        with pytest.raises(Problem, match="nothing in it"):
            await once(STRANGER, Put(pages=0), "K")

    await once(STRANGER, Put(pages=7), "K")

    with pytest.raises(Problem, match="used before"):
        await once(STRANGER, Put(pages=0), "K")
    assert await shelf(service) == [7]


async def test_a_call_in_steps_that_comes_again_with_its_key_takes_none_of_them(
    runner: Runner, service: Service
) -> None:
    once = runner.run_of(PUT_BETWEEN)

    first = await once(STRANGER, Put(pages=7), "K")
    again = await once(STRANGER, Put(pages=7), "K")

    assert msgspec.json.encode(first) == msgspec.json.encode(again) == b"7"
    with pytest.raises(Problem, match="used before"):
        await once(STRANGER, Put(pages=8), "K")
    assert await shelf(service) == [7, 7]


async def test_a_call_in_steps_refused_in_its_last_step_is_done_when_repeated_with_its_key(
    runner: Runner, service: Service
) -> None:
    once = runner.run_of(PUT_BETWEEN)
    for _ in range(2):
        with pytest.raises(Problem, match="does not fit"):
            await once(STRANGER, Put(pages=501), "K")
    assert await shelf(service) == [501, 501]

    assert await once(STRANGER, Put(pages=7), "K") == 7

    assert await shelf(service) == [7, 7, 501, 501]


async def test_the_last_step_of_a_call_is_stored_with_its_answer_or_not_at_all(
    runner: Runner, service: Service
) -> None:
    once = runner.run_of(PUT_BETWEEN)
    await service.run_sql("alter table idempotency_answers add constraint full_disk check (false)")
    with pytest.raises(psycopg.errors.CheckViolation):
        await once(STRANGER, Put(pages=7), "K")
    assert await shelf(service) == [7]

    await service.run_sql("alter table idempotency_answers drop constraint full_disk")
    assert await once(STRANGER, Put(pages=7), "K") == 7

    assert await shelf(service) == [7, 7, 7]


@pytest.mark.parametrize("pages", [(7, 7), (7, 8)], ids=["the same", "another"])
async def test_processes_with_the_same_call_in_steps_conclude_it_once(
    runner: Runner, service: Service, pages: tuple[int, int]
) -> None:
    both_are_at_it = asyncio.Barrier(2)

    async def put_together(opened: Steps[Any], caller: Caller, command: Put) -> Conclusion[int]:
        await both_are_at_it.wait()
        return await opened.conclude(lambda tx: put(tx, caller, command))

    operation = Operation("put_book", "POST /books", steps(put_together), body_member="book")
    processes = [Runner((operation,), service.database).run_of(operation) for _ in pages]
    outcomes = await asyncio.gather(
        *(once(STRANGER, Put(pages=count), "K") for once, count in zip(processes, pages, strict=True)),
        return_exceptions=True,
    )

    [stored] = await shelf(service)
    for count, outcome in zip(pages, outcomes, strict=True):
        if count == stored:
            assert msgspec.json.encode(outcome) == str(stored).encode()
        else:
            assert isinstance(outcome, Problem)
            assert "used before" in str(outcome)


async def test_calls_with_keys_share_their_runs_and_one_the_database_refuses_takes_no_other_with_it(
    runner: Runner, service: Service
) -> None:
    once = runner.run_of(PUT_MANY)
    calls = (("a", 1), ("b", 2), ("a", 1), ("c", 5000), ("d", 4))

    outcomes = await asyncio.gather(
        *(once(STRANGER, Put(pages=pages), key) for key, pages in calls), return_exceptions=True
    )

    assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, False, False, True, False]
    assert await shelf(service) == [1, 2, 4]


async def test_callers_who_come_again_and_again_still_share_their_runs(runner: Runner) -> None:
    async def come(times: int) -> list[int]:
        return [await runner.run_of(PUT_MANY)(STRANGER, Put(pages=1)) for _ in range(times)]

    together = await asyncio.gather(*(come(10) for _ in range(20)))

    assert {size for sizes in together for size in sizes} == {20}


class Try(Repeatable):
    pages: int


async def test_a_dry_run_answers_as_the_work_would_and_changes_nothing(runner: Runner, service: Service) -> None:
    async def put_repeatedly(tx: Tx[Any], caller: Caller, command: Try) -> int:
        await put(tx, caller, Put(pages=command.pages))
        return await tx.value("select count(*) from shelf")

    operation = Operation("put_book", "POST /books", single(put_repeatedly))
    run = Runner((operation,), service.database).run_of(operation)

    assert await run(STRANGER, Try(pages=7, dry_run=True, idempotency_key="K")) == 1
    assert await shelf(service) == []
    with pytest.raises(Problem, match="nothing in it"):
        await run(STRANGER, Try(pages=0, dry_run=True))
    with pytest.raises(psycopg.errors.CheckViolation):
        await run(STRANGER, Try(pages=5000, dry_run=True))
    assert await run(STRANGER, Try(pages=7, idempotency_key="K")) == 1
    assert msgspec.json.encode(await run(STRANGER, Try(pages=7, idempotency_key="K"))) == b"1"
    assert await shelf(service) == [7]
