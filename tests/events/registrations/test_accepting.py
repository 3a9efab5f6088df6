"""POST /api/registrations: accepted means stored, once, in order."""

import asyncio
import base64
import os

import pytest

from holdfast.events.registrations import sql
from holdfast.events.seats import intake
from holdfast.events.users import model
from tests.helpers.events_service import Service, eventually


async def test_a_second_registration_of_the_same_person_changes_nothing(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    before = (await ada.get(poll)).json()

    again = [await ada.register(event["id"], email=email) for email in ("ann@example.com", "ANN@Example.com")]
    await service.settle()

    assert again == [poll, poll]
    assert (await ada.get(poll)).json() == before


async def test_duplicates_at_the_same_moment_become_one_registration_and_one_account(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=5)

    polls = await asyncio.gather(*(ada.register(event["id"], email="ann@example.com") for _ in range(20)))
    await service.settle()

    assert len(set(polls)) == 1
    assert (await ada.get(f"/api/events/{event['id']}")).json()["data"]["registration_count"] == 1
    assert await service.run_sql("select count(*) from users where email = 'ann@example.com'") == [(1,)]


async def test_email_and_public_id_of_one_person_are_one_registration(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")

    assert await ada.register(event["id"], user_id=poll.rpartition("/")[2]) == poll
    assert await service.settle() == 1


async def test_an_account_that_another_process_creates_meanwhile_is_found(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    def ann() -> intake.IntakeRequest:
        return intake.IntakeRequest(ada.id, event["id"], email="ann@example.com")

    async with service.database.transaction() as tx:
        first = await intake.store_pending(tx, [ann()])
        meanwhile = asyncio.create_task(service.database.transact(lambda tx: intake.store_pending(tx, [ann()])))
        await eventually(lambda: service.run_sql("select from pg_locks where not granted"))
    second = await meanwhile

    assert (first[0].is_stored, first[0].code, second[0].code) == (True, None, None)
    assert first[0].public_id == second[0].public_id
    assert await service.settle() == 1


@pytest.mark.parametrize("times", [1, 2])
async def test_a_new_account_gets_another_public_id_as_often_as_the_random_one_is_taken(
    service: Service, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    first_bytes = base64.b32decode(poll.rpartition("/")[2].upper())
    random_bytes = iter([first_bytes])

    def urandom(count: int) -> bytes:
        return next(random_bytes, None) or os.urandom(count)

    monkeypatch.setattr(model, "urandom", urandom)

    other = await ada.register(event["id"], email="bob@example.com")

    assert next(random_bytes, None) is None
    assert other != poll
    assert await service.settle() == 2


async def test_a_registration_that_is_removed_at_the_same_moment_is_stored_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")

    async with service.database.transaction() as tx:
        await tx.run("lock table event_entries in access exclusive mode")
        await tx.value("select true")
        body = {"registration": {"event_id": event["id"], "email": "ann@example.com"}}
        again = asyncio.create_task(ada.post("/api/registrations", json=body))
        await eventually(lambda: service.run_sql("select from pg_locks where not granted"))
        await sql.delete_registration(tx, event["id"], poll.rpartition("/")[2], "organizer")
    accepted = (await again).json()

    assert (accepted["next"]["url"], "promise" in accepted["receipt"]) == (poll, True)
    assert await service.settle() == 1


async def test_a_full_event_without_waiting_places_refuses_at_once_and_creates_no_account(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    refusal = await ada.post(
        "/api/registrations", {"registration": {"event_id": event["id"], "email": "ben@example.com"}}
    )

    assert (refusal.status_code, refusal.json()["code"]) == (422, "event_full")
    assert refusal.json()["errors"] == {"event_id": [refusal.json()["error"]]}
    assert await service.run_sql("select from users where email = 'ben@example.com'") == []


async def test_a_seated_person_who_registers_again_for_a_full_event_is_answered_with_202(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    poll = await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    assert await ada.register(event["id"], email="ann@example.com") == poll


async def test_a_rejected_person_may_register_again_and_goes_to_the_end_of_the_line(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    polls = [await ada.register(event["id"], email=f"{name}@example.com") for name in ("ann", "ben")]
    await service.settle()
    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 2, "waitinglist_capacity": 5}})

    polls.append(await ada.register(event["id"], email="cal@example.com"))
    assert await ada.register(event["id"], email="ben@example.com") == polls[1]
    await service.settle()

    statuses = [(await ada.get(poll)).json()["data"]["status"] for poll in polls]
    assert statuses == ["registered", "waitlisted", "registered"]


async def test_a_rejected_person_in_a_batch_keeps_the_order_of_arrival(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    for name in ("ann", "ben"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    await ada.patch(f"/api/events/{event['id']}", {"event": {"waitinglist_capacity": 5}})
    order = ["cal@example.com", "ben@example.com", "dee@example.com"]

    results = await service.database.transact(
        lambda tx: intake.store_pending(tx, [intake.IntakeRequest(ada.id, event["id"], email=email) for email in order])
    )
    await service.settle()

    assert [(result.code, result.is_stored) for result in results] == 3 * [(None, True)]
    assert [
        email
        for (email,) in await service.run_sql(
            "select email from registrations join users on users.id = user_id where status = 'waitlisted'"
            " order by received_at, arrival"
        )
    ] == order


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("update events set cancelled_at = now() where id = %(id)s", "event_cancelled"),
        ("update events set datetime = now() where id = %(id)s", "event_expired"),
    ],
)
async def test_a_registration_for_a_cancelled_or_past_event_is_refused_at_once(
    service: Service, statement: str, code: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await service.run_sql(statement, id=event["id"])

    refusal = await ada.post("/api/registrations", {"registration": {"event_id": event["id"], "email": "a@b.org"}})

    assert (refusal.status_code, refusal.json()["code"]) == (422, code)


async def test_calls_of_one_batch_get_answers_of_their_own(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    open_event, full, foreign = await ada.create_event(), await ada.create_event(capacity=1), await bob.create_event()
    await ada.register(full["id"], email="first@example.com")
    await service.settle()
    requests = [
        {"event_id": open_event["id"], "email": "ann@example.com"},
        {"event_id": full["id"], "email": "ann@example.com"},
        {"event_id": foreign["id"], "email": "ann@example.com"},
        {"event_id": 2**62, "email": "ann@example.com"},
        {"event_id": open_event["id"], "user_id": "aaaaaaaa"},
        {"event_id": open_event["id"], "email": "ben@example.com"},
    ]

    answers = await asyncio.gather(*(ada.post("/api/registrations", {"registration": request}) for request in requests))

    assert [answer.status_code for answer in answers] == [202, 422, 403, 404, 422, 202]
    assert [answer.json().get("code") for answer in answers] == [
        None,
        "event_full",
        "forbidden",
        "not_found",
        "validation_failed",
        None,
    ]


async def test_an_organizer_cannot_register_anyone_for_another_organizers_event(service: Service) -> None:
    ada, bob = await service.organizer(), await service.organizer()
    event = await ada.create_event()

    refusal = await bob.post("/api/registrations", {"registration": {"event_id": event["id"], "email": "a@b.org"}})

    assert refusal.status_code == 403
    assert await service.run_sql("select from users where email = 'a@b.org'") == []
    assert await service.run_sql("select from registrations") == []


async def test_the_amount_is_the_price_at_the_time_unless_it_is_given(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=2_500)
    polls = [
        await ada.register(event["id"], email="ann@example.com"),
        await ada.register(event["id"], email="ben@example.com", amount_paid=0),
    ]
    await ada.patch(f"/api/events/{event['id']}", {"event": {"price": 3_000}})
    polls.append(await ada.register(event["id"], email="cal@example.com"))
    await service.settle()

    assert [(await ada.get(poll)).json()["data"]["amount_paid"] for poll in polls] == [2_500, 0, 3_000]
