"""Notifications reach every listening process after the commit, also after its connection was lost."""

import asyncio
from typing import Any

import pytest

from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.postgres.database import Database, Tx
from tests.helpers.events_service import Service
from tests.kit.box_table import box_contents, put_into_box
from tests.kit.postgres.listeners import NoticeQueue, listen_on, next_notice


async def tell(service: Service, channel: str, payload: str) -> None:
    await service.database.transact(lambda tx: tx.notify(channel, payload))


async def cut_off_listeners(service: Service) -> None:
    """End every connection that listens; there is at least one."""
    ended = await service.run_sql(
        """
        select pg_terminate_backend(pid) from pg_stat_activity
         where right(application_name, 9) = ' listener' and datname = current_database()
        """
    )
    assert ended


async def test_a_notification_reaches_every_listener_of_every_process_after_the_commit(
    service: Service, settings: Settings
) -> None:
    async with listen_on(settings, "doors", "doors") as one, listen_on(settings, "doors") as other:
        everyone = [*one, *other]

        async def work(tx: Tx[Any]) -> list[bool]:
            await tx.notify("doors", "open the first")
            await tx.notify("doors", "")
            await tx.value("select pg_sleep(0.05)")
            return [heard.empty() for heard in everyone]

        assert await service.database.transact(work) == [True, True, True]
        for heard in everyone:
            assert [await next_notice(heard), await next_notice(heard)] == ["open the first", ""]


async def test_the_notifying_process_gets_its_notification_before_it_answers(service: Service) -> None:
    heard: list[str] = []

    async def work(tx: Tx[Any]) -> list[str]:
        await tx.notify("doors", "open")
        return list(heard)

    with service.database.listen("doors", heard.append):
        before_the_commit = await service.database.transact(work)

        assert "open" not in before_the_commit
        assert "open" in heard


async def test_a_transaction_that_is_run_again_notifies_once(boxes: Service, settings: Settings) -> None:
    runs = 0

    async def lose_once(tx: Tx[Any]) -> None:
        nonlocal runs
        runs += 1
        await tx.run("set transaction isolation level repeatable read")
        await tx.value("select 'the snapshot is taken now'")
        await tx.notify("doors", f"run {runs}")
        if runs == 1:
            await boxes.run_sql("update boxes set content = content + 10 where id = 1")
        await put_into_box(tx, 1)

    async with listen_on(settings, "doors") as (heard,):
        await boxes.database.transact(lose_once)
        await tell(boxes, "doors", "done")

        assert [await next_notice(heard), await next_notice(heard)] == ["run 2", "done"]


async def test_a_notification_stays_on_its_own_channel(service: Service, settings: Settings) -> None:
    async with listen_on(settings, "doors", "windows") as (doors, windows):
        await tell(service, "doors", "open")
        await tell(service, "windows", "shut")

        assert (await next_notice(windows), await next_notice(doors)) == ("shut", "open")
        assert (windows.empty(), doors.empty()) == (True, True)


async def test_a_transaction_that_is_rolled_back_sends_no_notification(service: Service, settings: Settings) -> None:
    async def change_of_mind(tx: Tx[Any]) -> None:
        await tx.notify("doors", "never mind")
        raise NOT_FOUND()

    mine: list[str] = []
    async with listen_on(settings, "doors") as (heard,):
        with service.database.listen("doors", mine.append):
            with pytest.raises(Problem):
                await service.database.transact(change_of_mind)
            await tell(service, "doors", "open")

            assert await next_notice(heard) == "open"
            assert "never mind" not in mine


async def test_a_listener_that_has_stopped_gets_no_notifications(service: Service) -> None:
    heard: list[str] = []
    with service.database.listen("doors", heard.append):
        await tell(service, "doors", "one")
    until_then = list(heard)
    await tell(service, "doors", "two")

    assert "one" in until_then
    assert heard == until_then


async def test_a_listener_that_was_cut_off_comes_back_and_says_that_it_may_have_missed_something(
    service: Service, settings: Settings
) -> None:
    async with listen_on(settings, "doors", "windows") as (doors, windows):
        await cut_off_listeners(service)

        assert [await next_notice(doors), await next_notice(windows)] == ["", ""]
        await tell(service, "doors", "open")
        assert await next_notice(doors) == "open"


async def test_a_notification_of_another_program_is_ignored(service: Service, settings: Settings) -> None:
    async with listen_on(settings, "doors") as (heard,):
        await service.run_sql("select pg_notify('holdfast', 'hello')")
        await service.run_sql("select pg_notify('holdfast', '')")
        await tell(service, "doors", "open")

        assert await next_notice(heard) == "open"


async def test_a_listener_that_fails_affects_no_other_listener_and_no_transaction(
    boxes: Service, settings: Settings
) -> None:
    def fail(payload: str) -> None:
        raise ValueError(f"cannot read {payload}")

    async def work(tx: Tx[Any]) -> str:
        await put_into_box(tx, 1)
        await tx.notify("doors", "open")
        return "put"

    database = Database(settings.database_url, settings, size=3, name="tests")
    heard: NoticeQueue = asyncio.Queue()
    with database.listen("doors", fail), database.listen("doors", heard.put_nowait):
        await database.open()
        try:
            assert await next_notice(heard) == ""
            assert await database.transact(work) == "put"
            assert [await next_notice(heard), await next_notice(heard)] == ["open", "open"]
        finally:
            await database.close()
    assert await box_contents(boxes) == [1, 0]
