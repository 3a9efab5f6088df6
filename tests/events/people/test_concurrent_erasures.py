"""Erasing a person while others register, settle, announce and erase: it is done once, and nothing is left behind."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from holdfast.accounts.signin import links
from holdfast.events import ownership
from holdfast.events.mails import sending, sql
from holdfast.events.resources import Tx
from holdfast.events.seats import intake, settlement
from holdfast.events.users.directory import UserDirectory
from holdfast.kit.contract.caller import stranger
from holdfast.kit.contract.problems import Problem
from tests.helpers.events_service import Service
from tests.helpers.form_browser import Browser
from tests.helpers.locked_rows import hold_locks, wait_for_lock_waiters
from tests.helpers.people import (
    ANN,
    BOB,
    end_event,
    erase,
    list_registrations,
    mentions,
    read_all_text,
    sign_up,
)

STRANGER = stranger("address 192.0.2.1")


@contextlib.asynccontextmanager
async def open_transaction(
    service: Service, work: Callable[[Tx], Awaitable[Any]]
) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Do work in a transaction that stays open in the block, until what the block gets is called: that commits it."""
    done, resume = asyncio.Event(), asyncio.Event()

    async def stay(tx: Tx) -> None:
        await work(tx)
        await tx.value("select 1")
        done.set()
        await resume.wait()

    async def commit() -> None:
        resume.set()
        await running

    running = asyncio.create_task(service.database.transact(stay))
    await done.wait()
    yield commit
    await commit()


async def test_a_registration_during_the_erasure_of_its_person_makes_a_new_account(service: Service) -> None:
    ada = await service.organizer()
    past, coming = await ada.create_event(), await ada.create_event()
    await sign_up(service, past, "ann")
    await end_event(service, past)

    async with open_transaction(service, lambda tx: ownership.erase(tx, ANN)) as commit:
        registering = asyncio.create_task(ada.register(coming["id"], email="ann@example.com"))
        await wait_for_lock_waiters(service.run_sql)
        await commit()
    poll = await registering
    await service.settle()

    [erased], [again] = await list_registrations(ada, past), await list_registrations(ada, coming)
    assert (again["email"], poll.rpartition("/")[2]) == ("ann@example.com", again["user_id"])
    assert erased["email"] == f"erased-{erased['user_id']}@erased.invalid"
    assert erased["user_id"] != again["user_id"]


async def test_a_registration_that_read_the_account_before_the_erasure_makes_a_new_one(service: Service) -> None:
    ada = await service.organizer()
    past, coming = await ada.create_event(), await ada.create_event()
    await sign_up(service, past, "ann")
    await end_event(service, past)
    making = "insert into users (public_id, email) values ('zzzzzzzz', 'zoe@example.com')"

    async def both() -> list[str]:
        people = ("ann@example.com", "zoe@example.com")
        return await asyncio.gather(*(ada.register(coming["id"], email=email) for email in people))

    async with hold_locks(service.database.url, making) as zoe:
        # They share a statement. It has read Ann's account, and waits for Zoe's.
        registering = asyncio.create_task(both())
        await wait_for_lock_waiters(service.run_sql)
        await erase(service)
        await zoe.rollback()
    await registering
    await service.settle()

    [erased] = await list_registrations(ada, past)
    assert erased["email"].endswith("@erased.invalid")
    assert sorted(registration["email"] for registration in await list_registrations(ada, coming)) == [
        "ann@example.com",
        "zoe@example.com",
    ]


async def test_a_registration_being_stored_is_erased_with_the_others(service: Service) -> None:
    ada = await service.organizer()
    first, second = await ada.create_event(), await ada.create_event()
    await sign_up(service, first, "ann")
    request = intake.IntakeRequest(None, second["id"], email="ann@example.com", amount_paid=0, name="Ann Example")

    async with open_transaction(service, lambda tx: intake.store_pending(tx, [request])) as commit:
        erasing = asyncio.create_task(erase(service))
        await wait_for_lock_waiters(service.run_sql)
        await commit()

    assert [registration.event_id for registration in (await erasing).cancelled] == [first["id"], second["id"]]
    assert not mentions(await read_all_text(service), "ann")


async def test_an_erasure_waits_for_a_settlement_and_deletes_its_mails_too(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")

    async def settle(tx: Tx) -> None:
        cut = await tx.value("select now()::text")
        await settlement.lock_events(tx, cut, 10)
        await settlement.assign_seats(tx, [event["id"]], cut, 10)

    async with open_transaction(service, settle) as commit:
        erasing = asyncio.create_task(erase(service))
        await wait_for_lock_waiters(service.run_sql)
        await commit()

    done = await erasing
    assert ([registration.status for registration in done.cancelled], done.mails) == (["registered"], 1)
    assert [
        (registration["email"], registration["status"]) for registration in await list_registrations(ada, event)
    ] == [("bob@example.com", "registered")]
    assert not mentions(await read_all_text(service), "ann")


@pytest.mark.parametrize("first", ["the announcement", "the erasure"])
async def test_an_announcement_during_an_erasure_mails_no_erased_person(service: Service, first: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await sign_up(service, event, "ann", "bob")
    await service.run_sql("delete from mails")
    await ada.patch(f"/api/events/{event['id']}", {"event": {"location_name": "Studio 8"}})
    await service.run_sql("update mail_announcements set due_at = now()")  # ten minutes have gone by

    if first == "the announcement":
        async with open_transaction(service, lambda tx: sql.announce_batch(tx, 10)) as commit:
            other = asyncio.create_task(erase(service))
            await wait_for_lock_waiters(service.run_sql)
            await commit()
    else:
        async with open_transaction(service, lambda tx: ownership.erase(tx, ANN)) as commit:
            other = asyncio.create_task(sending.process_due_announcements(service.database))
            await wait_for_lock_waiters(service.run_sql)
            await commit()
    await other

    assert await service.run_sql("select recipient from mails") == [("bob@example.com",)]


@pytest.mark.parametrize("first", ["the sign-in", "the erasure"])
async def test_a_sign_in_during_an_erasure_is_signed_out_or_makes_a_new_account(service: Service, first: str) -> None:
    browser = Browser(service)
    await browser.sign_in("ann@example.com")
    link = links.decode_token(
        service.database.resources.secret, (await Browser(service).ask("ann@example.com")).rpartition("/")[2]
    )
    assert link
    [(mark,)] = await service.run_sql("select browser from sign_in_links where id = %(id)s", id=link)
    command = links.UseLink(id=link, browser=mark, user_agent="Firefox of a test", language="en")
    use = links.SignInByLink(UserDirectory()).use

    if first == "the sign-in":
        async with open_transaction(service, lambda tx: use(tx, STRANGER, command)) as commit:
            other = asyncio.create_task(erase(service))
            await wait_for_lock_waiters(service.run_sql)
            await commit()
        await other
    else:
        async with open_transaction(service, lambda tx: ownership.erase(tx, ANN)) as commit:
            signing_in = asyncio.create_task(service.database.transact(lambda tx: use(tx, STRANGER, command)))
            await wait_for_lock_waiters(service.run_sql)
            await commit()
        assert (await signing_in).status == "expired"

    assert not await browser.is_signed_in()
    assert await service.run_sql("select from sessions") == []
    assert "ann@" not in await read_all_text(service)


async def test_concurrent_erasures_of_one_person_are_done_once(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=5)
    await sign_up(service, event, "ann", "bob", "cal")

    both = await asyncio.gather(*(erase(service) for _ in range(4)), return_exceptions=True)

    assert sum(not isinstance(result, Problem) for result in both) == 1
    assert [registration["status"] for registration in await list_registrations(ada, event)] == [
        "registered",
        "waitlisted",
    ]


async def test_people_who_wait_for_each_others_seats_can_be_erased_concurrently(service: Service) -> None:
    ada = await service.organizer()
    one, two = [await ada.create_event(capacity=1, waitinglist_capacity=5) for _ in range(2)]
    await sign_up(service, one, "ann", "bob", "cal")
    await sign_up(service, two, "bob", "ann", "dan")

    await asyncio.gather(erase(service), erase(service, BOB))

    for event, next_in_line in ((one, "cal@example.com"), (two, "dan@example.com")):
        assert [
            (registration["email"], registration["status"]) for registration in await list_registrations(ada, event)
        ] == [(next_in_line, "registered")]


async def test_erasures_during_registrations_and_settlement_leave_no_data_and_lose_no_seat(service: Service) -> None:
    ada = await service.organizer()
    events = [await ada.create_event(capacity=3, waitinglist_capacity=100) for _ in range(4)]
    done = asyncio.Event()
    erased = 0

    async def register(event: dict[str, Any]) -> None:
        for number in range(12):
            await ada.register(event["id"], email="ann@example.com")
            await ada.register(event["id"], email=f"person{number}@example.com")

    async def erase_again_and_again() -> None:
        nonlocal erased
        while not done.is_set():
            with contextlib.suppress(Problem):
                await erase(service)
                erased += 1

    async def settle() -> None:
        while not done.is_set():
            await settlement.settle(service.database)
            await ada.patch(f"/api/events/{events[0]['id']}", {"event": {"location_name": f"Studio {erased}"}})
            await sending.process_due_announcements(service.database)

    others = [asyncio.create_task(coroutine) for coroutine in (erase_again_and_again(), settle())]
    try:
        await asyncio.gather(*map(register, events))
    finally:
        done.set()
        await asyncio.gather(*others)
    await service.settle()
    await sending.process_due_announcements(service.database)
    with contextlib.suppress(Problem):
        await erase(service)

    assert erased > 1
    assert "ann@" not in await read_all_text(service)
    assert await service.run_sql("select registered_count, waitlisted_count from events") == [(3, 9)] * 4
    assert (
        await service.run_sql(
            "select count(*) filter (where status = 'registered'), count(*) from registrations group by event_id"
        )
        == [(3, 12)] * 4
    )
