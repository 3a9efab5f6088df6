"""Notices are sent after the commit, a moment's notices by one statement, and no statement is too long."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.postgres.database import Database, Tx
from holdfast.kit.postgres.notifications import MAX_NOTICE_BYTES, Notices, merge_notices
from tests.helpers.events_service import Service, eventually
from tests.kit.box_table import put_into_box
from tests.kit.postgres.listeners import listen_on, next_notice


def test_notices_of_one_channel_are_merged_into_one_text() -> None:
    notices = [("stock", "7 1"), ("holds", ""), ("stock", "8 1"), ("stock", "7 2")]

    assert merge_notices(notices) == ["holds ", "stock 7 1\n8 1\n7 2"]


def test_no_text_of_notices_exceeds_the_limit_of_the_database() -> None:
    notices = [("stock", f"{number} é") for number in range(5_000)]

    texts = merge_notices(notices)

    assert len(texts) < 10
    assert all(len(text.encode()) <= MAX_NOTICE_BYTES for text in texts)
    assert [("stock", line) for text in texts for line in text.removeprefix("stock ").split("\n")] == notices


@pytest.mark.parametrize("length", [MAX_NOTICE_BYTES - 6 - 6, MAX_NOTICE_BYTES - 6 - 5])
async def test_a_text_of_notices_at_the_limit_of_the_database_arrives(
    service: Service, settings: Settings, length: int
) -> None:
    """Up to that length two payloads are one text, beyond it they are two."""
    payloads = ["x" * length, "short"]

    async def work(tx: Tx[Any]) -> None:
        for payload in payloads:
            await tx.notify("stock", payload)

    async with listen_on(settings, "stock") as (heard,):
        await service.database.transact(work)

        assert [await next_notice(heard), await next_notice(heard)] == payloads


async def test_notices_that_come_while_a_statement_runs_share_the_next_one() -> None:
    sent: list[Sequence[str]] = []
    free = asyncio.Event()

    async def send(texts: Sequence[str]) -> None:
        sent.append(texts)
        await free.wait()

    notices = Notices(send)
    notices.add([("stock", "7 1")])
    await eventually(lambda: _is(len(sent) == 1))
    for version in range(2, 5):
        notices.add([("stock", f"7 {version}"), ("holds", "")])
    free.set()
    await notices.close()

    assert sent == [["stock 7 1"], ["holds ", "stock 7 2\n7 3\n7 4"]]


async def test_notices_that_cannot_be_sent_hold_up_no_later_ones() -> None:
    sent: list[Sequence[str]] = []

    async def send(texts: Sequence[str]) -> None:
        sent.append(texts)
        if len(sent) == 1:
            raise SERVICE_UNAVAILABLE("The database cannot be reached right now.")

    notices = Notices(send)
    notices.add([("stock", "7 1")])
    await eventually(lambda: _is(len(sent) == 1))
    notices.add([("stock", "7 2")])
    await notices.close()

    assert sent == [["stock 7 1"], ["stock 7 2"]]


async def test_a_process_that_ends_sends_its_last_notices(boxes: Service, settings: Settings) -> None:
    async def work(tx: Tx[Any]) -> None:
        await put_into_box(tx, 1)
        await tx.notify("doors", "the last")

    async with listen_on(settings, "doors") as (heard,):
        database = Database(settings.database_url, settings, size=3, name="tests")
        await database.open()
        await database.transact(work)
        await database.close()

        assert await next_notice(heard) == "the last"


async def test_a_cancelled_wait_for_a_commit_still_sends_its_notices(boxes: Service, settings: Settings) -> None:
    await boxes.run_sql(
        """
        create function wait_for_the_test() returns trigger language plpgsql as $$
        begin
            perform pg_advisory_xact_lock(4711);
            return null;
        end $$;
        create constraint trigger slow_commit after update on boxes deferrable initially deferred
            for each row execute function wait_for_the_test()
        """
    )

    async def work(tx: Tx[Any]) -> None:
        await put_into_box(tx, 1)
        await tx.notify("doors", "open")

    async def hold(tx: Tx[Any]) -> None:
        await tx.value("select pg_advisory_xact_lock(4711)")
        committing = asyncio.create_task(boxes.database.transact(work))
        await eventually(is_committing)
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
        assert heard.empty()

    async def is_committing() -> bool:
        rows = await boxes.run_sql("select 1 from pg_locks where locktype = 'advisory' and not granted")
        return bool(rows)

    async with listen_on(settings, "doors") as (heard,):
        await boxes.database.transact(hold)

        assert await next_notice(heard) == "open"


async def _is(condition: bool) -> bool:
    return condition
