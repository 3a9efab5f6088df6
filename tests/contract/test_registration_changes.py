"""Registrations are changed and removed, and freed seats passed on."""

from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.contract.shapes import Event, Registration, failing_fields, objects_on_page, one, refusal
from tests.contract.steps import register, statuses
from tests.helpers.events_service import Service


@requirement("registrations.update")
@pytest.mark.parametrize(
    "change",
    [{"status": "waitlisted"}, {"amount_paid": 7}, {"amount_paid": 0}, {"status": "waitlisted", "amount_paid": 9}, {}],
)
async def test_an_update_of_a_registration_sets_the_given_fields_and_keeps_the_others(
    service: Service, change: dict[str, Any]
) -> None:
    ada = await service.organizer()
    [poll] = await register(service, ada, await ada.create_event(pricing_mode="fixed", price=2500), "ann")
    before = (await ada.get(poll)).json()["data"]

    response = await ada.patch(poll, {"registration": change})

    one(response, Registration)
    assert response.json()["data"] == before | change
    assert (await ada.get(poll)).json()["data"] == before | change


@requirement("registrations.update")
async def test_a_status_can_go_to_the_waiting_list_and_back(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, event, "ann")

    await ada.patch(poll, {"registration": {"status": "waitlisted"}})
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 0

    await ada.patch(poll, {"registration": {"status": "registered"}})
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 1
    assert await statuses(ada, [poll]) == ["registered"]


@requirement("registrations.update")
async def test_a_cancelled_seat_goes_to_the_first_on_the_waiting_list(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=2)
    polls = await register(service, ada, event, "ann", "bob", "cal")

    await ada.patch(polls[0], {"registration": {"status": "waitlisted"}})

    assert await statuses(ada, polls) == ["waitlisted", "registered", "waitlisted"]


@requirement("registrations.update")
async def test_a_registration_cannot_be_seated_beyond_capacity(service: Service) -> None:
    ada = await service.organizer()
    polls = await register(service, ada, await ada.create_event(capacity=1, waitinglist_capacity=1), "ann", "bob")

    response = await ada.patch(polls[1], {"registration": {"status": "registered"}})

    assert refusal(response) == (422, "event_full")
    assert await statuses(ada, polls) == ["registered", "waitlisted"]


@requirement("registrations.update", "errors.validation")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("status", value) for value in ("pending", "rejected", "Registered", "", None, 1)],
        *[("amount_paid", value) for value in (-1, 0.5, "7", None)],
        ("event_id", 4711),
        ("colour", "red"),
    ],
)
async def test_an_invalid_update_of_a_registration_changes_nothing(service: Service, name: str, value: Any) -> None:
    ada = await service.organizer()
    [poll] = await register(service, ada, await ada.create_event(), "ann")
    before = (await ada.get(poll)).json()

    assert failing_fields(await ada.patch(poll, {"registration": {name: value}})) == {name}
    assert (await ada.get(poll)).json() == before


@requirement("registrations.update")
async def test_a_readonly_field_of_a_registration_is_accepted_only_unchanged(service: Service) -> None:
    ada = await service.organizer()
    [poll] = await register(service, ada, await ada.create_event(), "ann")
    before = (await ada.get(poll)).json()["data"]
    body = {**before, "amount_paid": 7}

    changed = {**body, "received_at": "2020-01-01T00:00:00Z"}
    assert failing_fields(await ada.patch(poll, {"registration": changed})) == {"received_at"}
    assert (await ada.patch(poll, {"registration": body})).json()["data"] == body


@requirement("registrations.update", "registrations.get.pending")
async def test_a_registration_that_waits_cannot_be_changed(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")

    response = await ada.patch(poll, {"registration": {"status": "waitlisted"}})

    assert refusal(response) == (404, "registration_pending")


@requirement("registrations.delete")
async def test_a_removed_registration_is_answered_with_204_and_then_with_404(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, event, "ann")

    response = await ada.delete(poll)

    assert (response.status_code, response.content) == (204, b"")
    assert refusal(await ada.get(poll)) == (404, "not_found")
    assert objects_on_page(await ada.get("/api/registrations"), Registration) == []
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 0


@requirement("registrations.delete", "errors.not-found")
async def test_a_registration_is_removed_once(service: Service) -> None:
    ada = await service.organizer()
    [poll] = await register(service, ada, await ada.create_event(), "ann")
    await ada.delete(poll)

    assert refusal(await ada.delete(poll)) == (404, "not_found")


@requirement("registrations.delete")
async def test_a_freed_seat_goes_to_the_first_on_the_waiting_list(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=2)
    polls = await register(service, ada, event, "ann", "bob", "cal")

    await ada.delete(polls[0])

    assert await statuses(ada, polls[1:]) == ["registered", "waitlisted"]


@requirement("registrations.delete", "registrations.get.pending")
async def test_a_pending_registration_that_is_removed_is_never_seated(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")

    assert (await ada.delete(poll)).status_code == 204
    await service.settle()

    assert refusal(await ada.get(poll)) == (404, "not_found")
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 0


@requirement("registrations.delete", "registrations.create")
async def test_a_person_who_was_removed_may_register_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, event, "ann")
    await ada.delete(poll)

    assert await register(service, ada, event, "ann") == [poll]
    assert await statuses(ada, [poll]) == ["registered"]


@requirement("registrations.delete", "registrations.create.email")
async def test_removing_one_registration_leaves_the_others_of_the_person(service: Service) -> None:
    ada = await service.organizer()
    [gone] = await register(service, ada, await ada.create_event(), "ann")
    [other] = await register(service, ada, await ada.create_event(), "ann")

    await ada.delete(gone)

    assert await statuses(ada, [other]) == ["registered"]
