"""While an event, a person or a registration is locked, only requests that need it wait."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import httpx2
import pytest

from holdfast.events.seats import intake, settlement
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Client, Service, eventually
from tests.helpers.locked_rows import hold_locks, without_waiting

EVENT = "select from events where id = %(id)s for update"
PERSON = "select from users where email = %(email)s for update"
REGISTRATION = """
    select from registrations join users on users.id = user_id where email = %(email)s for update of registrations
"""


@pytest.fixture
async def running_settlement(service: Service) -> AsyncIterator[None]:
    """Settlement runs, as in a process with background work."""
    async with run_in_background(settlement.LOOP.run(service.database)):
        yield


def send_registration(
    client: Client, event: dict[str, Any], name: str, **options: Any
) -> Coroutine[Any, Any, httpx2.Response]:
    registration = {"event_id": event["id"], "email": f"{name}@example.com"}
    return client.post("/api/registrations", {"registration": registration}, **options)


async def outcome(client: Client, poll: str) -> str:
    """What became of a registration, once it is settled."""

    async def is_settled() -> bool:
        return (await client.get(poll)).json().get("code") != "registration_pending"

    await eventually(is_settled, seconds=2)
    answer = (await client.get(poll)).json()
    return answer["data"]["status"] if "data" in answer else answer["code"]


@pytest.mark.usefixtures("running_settlement")
async def test_a_locked_event_delays_only_its_own_settlement(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    locked, free = await ada.create_event(capacity=1, waitinglist_capacity=0), await ben.create_event()

    async with hold_locks(
        service.database.url, "select from events where id = %(id)s for no key update", id=locked["id"]
    ):
        first, second = [await ada.register(locked["id"], email=f"{name}@example.com") for name in ("ann", "bob")]
        poll = await ben.register(free["id"], email="cal@example.com")

        assert await outcome(ben, poll) == "registered"
        assert (await ada.get(first)).json()["code"] == "registration_pending"

    assert [await outcome(ada, poll) for poll in (first, second)] == ["registered", "registration_rejected"]


async def test_a_locked_event_with_more_registrations_than_a_batch_delays_no_other(service: Service) -> None:
    ada = await service.organizer()
    locked, free = await ada.create_event(), await ada.create_event()
    for number in range(5):
        await ada.register(locked["id"], email=f"n{number}@example.com")
    poll = await ada.register(free["id"], email="ann@example.com")

    async with hold_locks(service.database.url, EVENT, id=locked["id"]):
        assert await without_waiting(settlement.settle(service.database, batch_size=2)) == 1
        assert await outcome(ada, poll) == "registered"

    assert await settlement.settle(service.database, batch_size=2) == 5


@pytest.mark.usefixtures("running_settlement")
async def test_a_locked_registration_delays_only_its_own_event(service: Service) -> None:
    ada = await service.organizer()
    event, free = await ada.create_event(capacity=1, waitinglist_capacity=0), await ada.create_event()

    async with hold_locks(
        service.database.url, "select from events where id = %(id)s for no key update", id=event["id"]
    ) as operator:
        bob, cal = [await ada.register(event["id"], email=f"{name}@example.com") for name in ("bob", "cal")]
        async with hold_locks(service.database.url, REGISTRATION, email="bob@example.com"):
            await operator.rollback()
            dan = await ada.register(free["id"], email="dan@example.com")

            assert await outcome(ada, dan) == "registered"
            assert [(await ada.get(poll)).json()["code"] for poll in (bob, cal)] == ["registration_pending"] * 2

    assert [await outcome(ada, poll) for poll in (bob, cal)] == ["registered", "registration_rejected"]


async def test_registrations_before_a_locked_one_are_settled_and_later_ones_wait(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=0)
    ann, bob, cal = [await ada.register(event["id"], email=f"{name}@example.com") for name in ("ann", "bob", "cal")]

    async with hold_locks(service.database.url, REGISTRATION, email="bob@example.com"):
        assert await without_waiting(service.settle()) == 1
        assert await outcome(ada, ann) == "registered"
        assert [(await ada.get(poll)).json()["code"] for poll in (bob, cal)] == ["registration_pending"] * 2

    assert await service.settle() == 2
    assert [await outcome(ada, poll) for poll in (bob, cal)] == ["registered", "registration_rejected"]


@pytest.mark.usefixtures("running_settlement")
async def test_registrations_for_a_locked_event_wait_in_order_and_others_are_taken_and_settled(
    service: Service,
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    locked, free = await ada.create_event(capacity=2, waitinglist_capacity=0), await ben.create_event()

    async with hold_locks(service.database.url, EVENT, id=locked["id"]) as operator:
        waiting = [asyncio.create_task(send_registration(ada, locked, "ann"))]
        await operator.wait_for_waiters()
        waiting += [asyncio.create_task(send_registration(ada, locked, name)) for name in ("bob", "cal")]
        others = await without_waiting(
            asyncio.gather(*(send_registration(ben, free, f"n{number}") for number in range(20)))
        )

        assert [answer.status_code for answer in others] == [202] * 20
        assert await outcome(ben, others[0].json()["next"]["url"]) == "registered"
        assert not any(task.done() for task in waiting)

    polls = [(await task).json()["next"]["url"] for task in waiting]
    assert [await outcome(ada, poll) for poll in polls] == ["registered", "registered", "registration_rejected"]


async def test_a_locked_person_waits_and_others_are_registered_for_the_same_event(service: Service) -> None:
    ada = await service.organizer()
    past, event = await ada.create_event(), await ada.create_event()
    await ada.register(past["id"], email="ann@example.com")

    async with hold_locks(service.database.url, PERSON, email="ann@example.com") as operator:
        ann = asyncio.create_task(send_registration(ada, event, "ann"))
        answers = await without_waiting(
            asyncio.gather(*(send_registration(ada, event, f"n{number}") for number in range(20)))
        )
        assert [answer.status_code for answer in answers] == [202] * 20
        await operator.wait_for_waiters()
        assert not ann.done()

    assert (await ann).status_code == 202


async def test_a_person_whose_rejection_is_locked_waits_to_register_again_and_others_do_not(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=0)
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 5}})

    async with hold_locks(service.database.url, REGISTRATION, email="bob@example.com") as operator:
        bob = asyncio.create_task(send_registration(ada, event, "bob"))
        assert (await without_waiting(send_registration(ada, event, "cal"))).status_code == 202
        await operator.wait_for_waiters()
        assert not bob.done()

    assert (await bob).status_code == 202
    assert await service.settle() == 2


async def test_an_account_being_created_by_another_session_delays_no_other_registration(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    creation = "insert into users (public_id, email) values ('abcdefgh', 'ann@example.com')"

    async with hold_locks(service.database.url, creation):
        ann, *others = await without_waiting(
            asyncio.gather(*(send_registration(ada, event, name) for name in ("ann", "bob", "cal", "dan")))
        )

    assert [answer.status_code for answer in others] == [202] * 3
    assert (ann.status_code, ann.json()["code"]) == (503, "service_unavailable")
    assert (await send_registration(ada, event, "ann")).status_code == 202


@pytest.mark.usefixtures("running_settlement")
async def test_a_stalled_intake_holds_up_the_settlement_but_not_the_intake(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    async with hold_locks(
        service.database.url, "select pg_advisory_xact_lock_shared(%(lock)s)", lock=intake.ADVISORY_LOCK_ID
    ):
        polls = [
            await without_waiting(ada.register(event["id"], email=f"n{number}@example.com")) for number in range(10)
        ]
        assert (await ada.get(polls[0])).json()["code"] == "registration_pending"

    assert [await outcome(ada, poll) for poll in polls] == ["registered"] * 10


async def test_a_call_whose_key_another_process_works_on_waits_and_other_keys_do_not(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    key = {"Idempotency-Key": "K"}
    assert (await send_registration(ada, event, "ann", headers=key)).status_code == 202
    [(id,)] = await service.run_sql("select id from idempotency_answers")
    await service.run_sql("delete from idempotency_answers")
    lock = "select pg_advisory_xact_lock(1768187245, %(lock)s)"

    async with hold_locks(service.database.url, lock, lock=int.from_bytes(id[:4], signed=True)) as other:
        again = asyncio.create_task(send_registration(ada, event, "ann", headers=key))
        await other.wait_for_waiters()
        answers = await without_waiting(
            asyncio.gather(
                *(send_registration(ada, event, f"n{n}", headers={"Idempotency-Key": f"K{n}"}) for n in range(5))
            )
        )
        assert [answer.status_code for answer in answers] == [202] * 5
        assert not again.done()

    assert (await again).status_code == 202
