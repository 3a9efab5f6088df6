"""Registrations are settled, read and listed."""

import re
from datetime import UTC, datetime

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Event, Registration, objects_on_page, one, refusal
from tests.contract.steps import FOUR, handle_in, register, statuses
from tests.helpers.events_service import Service


@requirement("registrations.fields", "registrations.get", "registrations.user-id")
async def test_a_settled_registration_is_named_by_event_and_person(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, event, "ann")

    ann = one(await ada.get(poll), Registration)

    assert ann.id == f"{event['id']}-{ann.user_id}"
    assert ann.event_id == event["id"]
    assert poll == f"/api/registrations/{event['id']}/{ann.user_id}"


@requirement("registrations.user-id")
async def test_no_two_people_share_a_handle(service: Service) -> None:
    ada = await service.organizer()

    polls = await register(service, ada, await ada.create_event(), *FOUR)

    assert len({handle_in(poll) for poll in polls}) == 4
    assert {len(handle_in(poll)) for poll in polls} == {8}


@requirement("registrations.received-at", "format.timestamps")
async def test_the_time_of_receipt_has_microseconds(service: Service) -> None:
    ada = await service.organizer()
    before = datetime.now(UTC)
    [poll] = await register(service, ada, await ada.create_event(), "ann")

    received_at = (await ada.get(poll)).json()["data"]["received_at"]

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", received_at)
    assert before <= datetime.fromisoformat(received_at) <= datetime.now(UTC)


@requirement("registrations.received-at", "registrations.list")
async def test_registrations_have_rising_times_of_receipt(service: Service) -> None:
    ada = await service.organizer()
    polls = await register(service, ada, await ada.create_event(), *FOUR)

    registrations = objects_on_page(await ada.get("/api/registrations"), Registration)

    assert [registration.user_id for registration in registrations] == [handle_in(poll) for poll in polls]
    received = [registration.received_at for registration in registrations]
    assert received == sorted(set(received))


@requirement("registrations.list", "registrations.fields")
async def test_a_list_of_registrations_has_each_as_it_is_read_alone(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=1)
    polls = await register(service, ada, event, "ann", "bob")

    response = await ada.get("/api/registrations")

    assert [registration.status for registration in objects_on_page(response, Registration)] == [
        "registered",
        "waitlisted",
    ]
    assert response.json()["data"] == [(await ada.get(poll)).json()["data"] for poll in polls]


@requirement("registrations.list", "auth.organizer-scope", "auth.admin")
async def test_an_organizer_lists_the_registrations_of_its_own_events_and_an_admin_all(
    new_service: Service,
) -> None:
    ada, ben = await new_service.organizer(), await new_service.organizer()
    first, second = await ada.create_event(), await ben.create_event()
    await register(new_service, ada, first, "ann")
    await register(new_service, ben, second, "ann")

    seen = [
        [
            registration.event_id
            for registration in objects_on_page(await client.get("/api/registrations"), Registration)
        ]
        for client in (ada, ben, await new_service.admin())
    ]

    assert seen == [[first["id"]], [second["id"]], [first["id"], second["id"]]]


@requirement("registrations.get.pending", "registrations.get")
async def test_a_registration_that_waits_is_pending_until_it_is_settled(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")

    waiting = await ada.get(poll)
    await service.settle()

    assert refusal(waiting) == (404, "registration_pending")
    assert waiting.headers["Retry-After"] == str(waiting.json()["retry_after"])
    assert await statuses(ada, [poll]) == ["registered"]


@requirement("registrations.get.pending", "registrations.list", "events.get")
async def test_a_registration_that_waits_holds_no_seat_yet(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")

    assert objects_on_page(await ada.get("/api/registrations"), Registration) == []
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 0


@requirement("registrations.get", "registrations.status")
async def test_a_rejected_registration_is_answered_with_registration_rejected(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)

    _, bob = await register(service, ada, event, "ann", "bob")

    assert refusal(await ada.get(bob)) == (404, "registration_rejected")


@requirement("registrations.get", "errors.not-found")
@pytest.mark.parametrize("handle", ["abcdefgh", "abc", "ABCDEFGH", "%00", "abcdefgh%0A", "ä"])
async def test_a_person_who_never_registered_is_not_found(service: Service, handle: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert refusal(await ada.get(f"/api/registrations/{event['id']}/{handle}")) == (404, "not_found")


@requirement("registrations.status")
@pytest.mark.parametrize(
    ("capacity", "places", "outcome"),
    [
        (4, 0, ["registered", "registered", "registered", "registered"]),
        (3, 1, ["registered", "registered", "registered", "waitlisted"]),
        (1, 3, ["registered", "waitlisted", "waitlisted", "waitlisted"]),
    ],
)
async def test_seats_go_first_then_the_waiting_list(
    service: Service, capacity: int, places: int, outcome: list[str]
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=capacity, waitinglist_capacity=places)

    polls = await register(service, ada, event, *FOUR)

    assert await statuses(ada, polls) == outcome


@requirement("registrations.status", "events.update")
async def test_added_seats_go_to_the_first_on_the_waiting_list(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=3)
    polls = await register(service, ada, event, *FOUR)

    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 3}})

    assert await statuses(ada, polls) == ["registered", "registered", "registered", "waitlisted"]
