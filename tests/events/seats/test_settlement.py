"""Places go in order of arrival, across all processes that accept and settle."""

import asyncio

from holdfast.events.seats import intake, settlement
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Client, Service, eventually


async def statuses(ada: Client, polls: list[str]) -> list[str]:
    """The status, or the code of the refusal, at each address."""
    answers = [(await ada.get(poll)).json() for poll in polls]
    return [answer["data"]["status"] if "data" in answer else answer["code"] for answer in answers]


async def test_seats_are_given_in_order_of_arrival_then_waiting_places_then_rejections(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=2, waitinglist_capacity=1)
    polls = [await ada.register(event["id"], email=f"{name}@example.com") for name in ("ann", "ben", "cal", "dee")]
    assert await statuses(ada, polls) == ["registration_pending"] * 4

    assert await service.settle() == 4

    assert await statuses(ada, polls) == ["registered", "registered", "waitlisted", "registration_rejected"]


async def test_the_order_of_settlement_does_not_depend_on_the_size_of_the_batch(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=5, waitinglist_capacity=3)
    polls = [await ada.register(event["id"], email=f"n{number}@example.com") for number in range(10)]

    assert await settlement.settle(service.database, batch_size=3) == 10

    assert await statuses(ada, polls) == ["registered"] * 5 + ["waitlisted"] * 3 + ["registration_rejected"] * 2


async def test_one_batch_settles_several_events_each_by_its_own_order(service: Service) -> None:
    ada = await service.organizer()
    small, large = await ada.create_event(capacity=1), await ada.create_event(capacity=3)
    polls = [
        await ada.register(event["id"], email=f"n{number}@example.com")
        for number in range(3)
        for event in (small, large)
    ]

    await service.settle()

    assert await statuses(ada, polls[0::2]) == ["registered", "registration_rejected", "registration_rejected"]
    assert await statuses(ada, polls[1::2]) == ["registered"] * 3


async def test_a_later_registration_is_not_settled_while_an_earlier_one_is_being_stored(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    early = intake.IntakeRequest(ada.id, event["id"], email="early@example.com")

    async with service.database.transaction() as tx:
        accepted = await intake.store_pending(tx, [early])
        late = await ada.register(event["id"], email="late@example.com")
        settling = asyncio.create_task(service.settle())
        await eventually(lambda: service.run_sql("select from pg_locks where locktype = 'advisory' and not granted"))
        assert await statuses(ada, [late]) == ["registration_pending"]
    assert await settling == 2

    first = f"/api/registrations/{event['id']}/{accepted[0].public_id}"
    assert await statuses(ada, [first, late]) == ["registered", "registration_rejected"]


async def test_registrations_that_wait_when_their_event_is_cancelled_are_rejected_for_that_reason(
    service: Service,
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")
    await ada.delete(f"/api/events/{event['id']}")

    await service.settle()

    answer = (await ada.get(poll)).json()
    assert (answer["code"], answer["reason"]) == ("registration_rejected", "event_cancelled")


async def test_a_rejected_registration_can_be_neither_changed_nor_deleted(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=0)
    _, rejected = [await ada.register(event["id"], email=f"{name}@example.com") for name in ("ann", "ben")]
    await service.settle()

    answers = [
        await ada.patch(rejected, {"registration": {"status": "registered"}}),
        await ada.delete(rejected),
        await ada.get(rejected),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "registration_rejected")] * 3


async def test_two_settlers_at_once_settle_everything_once(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=40, waitinglist_capacity=5)
    polls = [await ada.register(event["id"], email=f"n{number}@example.com") for number in range(50)]

    settled = await asyncio.gather(*(settlement.settle(service.database, batch_size=7) for _ in range(2)))

    assert sum(settled) == 50
    expected = ["registered"] * 40 + ["waitlisted"] * 5 + ["registration_rejected"] * 5
    assert await statuses(ada, polls) == expected


async def test_the_settlement_loop_settles_registrations_that_are_announced(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    async with run_in_background(settlement.LOOP.run(service.database)):
        poll = await ada.register(event["id"], email="ann@example.com")

        async def seated() -> bool:
            return await statuses(ada, [poll]) == ["registered"]

        await eventually(seated, seconds=3)
