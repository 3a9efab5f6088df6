"""Registrations are accepted, by address or by public id, within a limit for each minute."""

import re
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import (
    Acceptance,
    ApiKey,
    Event,
    Registration,
    User,
    failing_fields,
    objects_on_page,
    one,
    refusal,
)
from tests.contract.steps import FOUR, handle_in, register, statuses, yesterday
from tests.helpers.events_service import Client, Service, running_events


async def post(client: Client, **fields: Any) -> httpx2.Response:
    return await client.post("/api/registrations", {"registration": fields})


@requirement("registrations.create", "format.data")
async def test_a_registration_is_accepted_with_an_address_to_poll(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    response = await post(ada, event_id=event["id"], email="ann@example.com")

    assert response.status_code == 202
    accepted = msgspec.convert(response.json(), Acceptance)
    assert re.fullmatch(rf"/api/registrations/{event['id']}/\w{{8}}", accepted.next.url)


@requirement("registrations.create.event", "errors.validation")
@pytest.mark.parametrize("fields", [{}, {"event_id": None}, {"event_id": "1"}, {"event_id": 1.5}, {"event_id": 0}])
async def test_a_registration_without_an_event_is_refused(service: Service, fields: dict[str, Any]) -> None:
    ada = await service.organizer()

    assert failing_fields(await post(ada, email="ann@example.com", **fields)) == {"event_id"}


@requirement("registrations.create.event", "errors.not-found")
async def test_a_registration_for_an_event_that_does_not_exist_is_refused(service: Service) -> None:
    ada = await service.organizer()

    assert refusal(await post(ada, event_id=4711, email="ann@example.com")) == (404, "not_found")


@requirement("registrations.create.who")
@pytest.mark.parametrize("person", [{}, {"user_id": None, "email": None}])
async def test_a_registration_without_a_person_is_refused(service: Service, person: dict[str, Any]) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing_fields(await post(ada, event_id=event["id"], **person)) & {"user_id", "email"}


@requirement("registrations.create.who")
async def test_a_registration_by_user_id_and_email_together_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, await ada.create_event(), "ann")

    response = await post(ada, event_id=event["id"], user_id=handle_in(poll), email="ann@example.com")

    assert failing_fields(response) & {"user_id", "email"}
    assert await service.settle() == 0


@requirement("registrations.create.email")
async def test_registering_by_email_creates_a_student_account(new_service: Service) -> None:
    ada = await new_service.organizer()
    await register(new_service, ada, await ada.create_event(), "ann")

    [_, ann] = objects_on_page(await (await new_service.admin()).get("/api/users"), User)

    assert (ann.email, ann.role, ann.name, ann.slug) == ("ann@example.com", "user", None, None)


@requirement("registrations.create.email")
async def test_an_address_has_one_account_for_all_organizers(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()

    first = await ada.register((await ada.create_event())["id"], email="ann@example.com")
    second = await ada.register((await ada.create_event())["id"], email="Ann@Example.COM")
    third = await ben.register((await ben.create_event())["id"], email="ann@example.com")

    assert handle_in(first) == handle_in(second) == handle_in(third)


@requirement("registrations.create.email")
async def test_an_organizer_can_be_registered_by_its_address(new_service: Service) -> None:
    ada = await new_service.organizer(email="ada@example.com")
    event = await ada.create_event()

    [poll] = await register(new_service, ada, event, "ada")

    assert await statuses(ada, [poll]) == ["registered"]
    assert len(objects_on_page(await (await new_service.admin()).get("/api/users"), User)) == 1


@requirement("registrations.create.email", "errors.validation")
@pytest.mark.parametrize("email", ["", "ann", "ann@", "ann@example", "ann ann@example.com", 1, ["ann@example.com"]])
async def test_a_registration_by_what_is_no_address_is_refused(service: Service, email: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing_fields(await post(ada, event_id=event["id"], email=email)) == {"email"}


@requirement("registrations.create.user-id")
async def test_a_person_with_an_account_is_registered_by_public_id(service: Service) -> None:
    ada = await service.organizer()
    [known] = await register(service, ada, await ada.create_event(), "ann")
    event = await ada.create_event()

    poll = await ada.register(event["id"], user_id=handle_in(known))
    await service.settle()

    assert poll == f"/api/registrations/{event['id']}/{handle_in(known)}"
    assert await statuses(ada, [poll]) == ["registered"]


@requirement("registrations.create.user-id")
@pytest.mark.parametrize("user_id", ["abcdefgh", "abc", "", "ABCDEFGH", "abcdefgh\n", 1])
async def test_an_unknown_public_id_is_refused(service: Service, user_id: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing_fields(await post(ada, event_id=event["id"], user_id=user_id)) == {"user_id"}
    assert await service.settle() == 0


@requirement("registrations.create")
async def test_a_second_registration_of_the_same_person_is_accepted_and_changes_nothing(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, event, "ann")
    before = (await ada.get(poll)).json()

    again = await ada.register(event["id"], email="ann@example.com", amount_paid=5)
    await service.settle()

    assert again == poll
    assert (await ada.get(poll)).json() == before
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 1


@requirement("registrations.create")
async def test_a_registration_for_a_cancelled_past_or_full_event_is_refused_with_the_reason(service: Service) -> None:
    ada = await service.organizer()
    cancelled, past, full = [await ada.create_event(capacity=1) for _ in range(3)]
    await ada.delete(f"/api/events/{cancelled['id']}")
    await ada.patch(f"/api/events/{past['id']}", {"event": {"datetime": yesterday()}})
    await register(service, ada, full, "ann")

    refusals = [await post(ada, event_id=event["id"], email="bob@example.com") for event in (cancelled, past, full)]

    assert [refusal(response) for response in refusals] == [
        (422, "event_cancelled"),
        (422, "event_expired"),
        (422, "event_full"),
    ]


@requirement("registrations.create.amount")
@pytest.mark.parametrize(
    ("price", "amount"),
    [
        ({"pricing_mode": "free", "price": 0}, 0),
        ({"pricing_mode": "fixed", "price": 2500}, 2500),
        ({"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000}, 2500),
    ],
)
async def test_the_amount_paid_is_the_current_price_if_none_is_given(
    service: Service, price: dict[str, Any], amount: int
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**price)

    [poll] = await register(service, ada, event, "ann")

    assert one(await ada.get(poll), Registration).amount_paid == amount


@requirement("registrations.create.amount")
@pytest.mark.parametrize("amount", [0, 1, 99_999])
async def test_an_amount_paid_is_taken_as_given(service: Service, amount: int) -> None:
    ada = await service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=2500)

    poll = await ada.register(event["id"], email="ann@example.com", amount_paid=amount)
    await service.settle()

    assert one(await ada.get(poll), Registration).amount_paid == amount


@requirement("registrations.create.amount", "errors.validation")
@pytest.mark.parametrize("amount", [-1, 0.5, "1", True])
async def test_an_amount_that_is_no_money_is_refused(service: Service, amount: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    response = await post(ada, event_id=event["id"], email="ann@example.com", amount_paid=amount)

    assert failing_fields(response) == {"amount_paid"}


@requirement("registrations.create.limit")
async def test_a_key_registers_600_times_a_minute_unless_configured_otherwise() -> None:
    assert str(Settings.model_construct().limits["registrations"]) == "600 per 1 minute"


@requirement("registrations.create.limit", "errors.rate-limit")
async def test_a_key_that_registers_too_often_is_answered_with_retry_after(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"registrations_per_minute": 3})) as service:
        ada = await service.organizer()
        event = await ada.create_event()

        accepted = [await post(ada, event_id=event["id"], email=f"{name}@example.com") for name in FOUR[:3]]
        answer = await post(ada, event_id=event["id"], email="dee@example.com")

        assert [response.status_code for response in accepted] == [202, 202, 202]
        assert refusal(answer) == (429, "rate_limited")
        assert answer.headers["Retry-After"] == str(answer.json()["retry_after"])
        assert 1 <= answer.json()["retry_after"] <= 60
        assert await service.settle() == 3


@requirement("registrations.create.limit")
async def test_the_limit_of_registrations_counts_for_one_key(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"registrations_per_minute": 1})) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        made = await ada.post("/api/keys", {"api_key": {"name": "Box office"}})
        spare = Client(service.http, one(made, ApiKey, status=201).key)
        await ada.register(event["id"], email="ann@example.com")

        assert refusal(await post(ada, event_id=event["id"], email="bob@example.com")) == (429, "rate_limited")

        assert (await post(spare, event_id=event["id"], email="cal@example.com")).status_code == 202


@requirement("registrations.create.limit")
async def test_a_key_at_its_limit_may_still_poll(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"registrations_per_minute": 1})) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        [poll] = await register(service, ada, event, "ann")
        await post(ada, event_id=event["id"], email="bob@example.com")

        assert await statuses(ada, [poll] * 5) == ["registered"] * 5
