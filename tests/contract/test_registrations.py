"""People are registered: accepted at once, settled in order, changed and removed."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.events.settings import Settings
from tests.contract.requirements import requirement
from tests.contract.shapes import Accepted, ApiKey, Event, Registration, User, failing_fields, listed, one, refusal
from tests.support import Client, Service, running

NAMES = ("ann", "bob", "cal", "dee")


async def post(client: Client, **fields: Any) -> httpx2.Response:
    return await client.post("/api/registrations", {"registration": fields})


async def register(service: Service, client: Client, event: dict[str, Any], *names: str) -> list[str]:
    """Register people by name and settle; the addresses to poll."""
    polls = [await client.register(event["id"], email=f"{name}@example.com") for name in names]
    await service.settle()
    return polls


async def statuses(client: Client, polls: list[str]) -> list[str]:
    return [one(await client.get(poll), Registration).status for poll in polls]


def handle_in(poll: str) -> str:
    return poll.rpartition("/")[2]


@requirement("registrations.create", "format.data")
async def test_a_registration_is_accepted_with_an_address_to_poll(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    response = await post(ada, event_id=event["id"], email="ann@example.com")

    assert response.status_code == 202
    accepted = msgspec.convert(response.json(), Accepted)
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
async def test_a_registration_of_nobody_is_refused(service: Service, person: dict[str, Any]) -> None:
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
async def test_registering_by_email_creates_a_student_account(service: Service) -> None:
    ada = await service.organizer()
    await register(service, ada, await ada.create_event(), "ann")

    [_, ann] = listed(await (await service.admin()).get("/api/users"), User)

    assert (ann.email, ann.role, ann.name, ann.slug) == ("ann@example.com", "user", None, None)


@requirement("registrations.create.email")
async def test_an_address_belongs_to_one_account_with_every_organizer(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()

    first = await ada.register((await ada.create_event())["id"], email="ann@example.com")
    second = await ada.register((await ada.create_event())["id"], email="Ann@Example.COM")
    third = await ben.register((await ben.create_event())["id"], email="ann@example.com")

    assert handle_in(first) == handle_in(second) == handle_in(third)


@requirement("registrations.create.email")
async def test_an_organizer_can_be_registered_by_its_address(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com")
    event = await ada.create_event()

    [poll] = await register(service, ada, event, "ada")

    assert await statuses(ada, [poll]) == ["registered"]
    assert len(listed(await (await service.admin()).get("/api/users"), User)) == 1


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
async def test_a_public_id_of_nobody_is_refused(service: Service, user_id: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    assert failing_fields(await post(ada, event_id=event["id"], user_id=user_id)) == {"user_id"}
    assert await service.settle() == 0


@requirement("registrations.create")
async def test_the_same_person_again_is_accepted_and_changes_nothing(service: Service) -> None:
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
async def test_an_event_that_takes_nobody_any_more_says_why(service: Service) -> None:
    ada = await service.organizer()
    cancelled, past, full = [await ada.create_event(capacity=1) for _ in range(3)]
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    await ada.delete(f"/api/events/{cancelled['id']}")
    await ada.patch(f"/api/events/{past['id']}", {"event": {"datetime": yesterday}})
    await register(service, ada, full, "ann")

    refused = [await post(ada, event_id=event["id"], email="bob@example.com") for event in (cancelled, past, full)]

    assert [refusal(each) for each in refused] == [
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
async def test_the_amount_paid_is_the_current_price_unless_given(
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
async def test_a_key_that_registers_too_often_is_told_to_wait(settings: Settings) -> None:
    async with running(settings.model_copy(update={"registrations_per_minute": 3})) as service:
        ada = await service.organizer()
        event = await ada.create_event()

        taken = [await post(ada, event_id=event["id"], email=f"{name}@example.com") for name in NAMES[:3]]
        refused = await post(ada, event_id=event["id"], email="dee@example.com")

        assert [response.status_code for response in taken] == [202, 202, 202]
        assert refusal(refused) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == str(refused.json()["retry_after"])
        assert 1 <= refused.json()["retry_after"] <= 60
        assert await service.settle() == 3


@requirement("registrations.create.limit")
async def test_each_key_has_a_limit_of_its_own(settings: Settings) -> None:
    async with running(settings.model_copy(update={"registrations_per_minute": 1})) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        made = await ada.post("/api/keys", {"api_key": {"name": "Box office"}})
        spare = Client(service.http, one(made, ApiKey, status=201).key)
        await ada.register(event["id"], email="ann@example.com")

        assert refusal(await post(ada, event_id=event["id"], email="bob@example.com")) == (429, "rate_limited")

        assert (await post(spare, event_id=event["id"], email="cal@example.com")).status_code == 202


@requirement("registrations.create.limit")
async def test_a_key_at_its_limit_may_still_poll(settings: Settings) -> None:
    async with running(settings.model_copy(update={"registrations_per_minute": 1})) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        [poll] = await register(service, ada, event, "ann")
        await post(ada, event_id=event["id"], email="bob@example.com")

        assert await statuses(ada, [poll] * 5) == ["registered"] * 5


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

    polls = await register(service, ada, await ada.create_event(), *NAMES)

    assert len({handle_in(poll) for poll in polls}) == 4
    assert {len(handle_in(poll)) for poll in polls} == {8}


@requirement("registrations.received-at", "format.timestamps")
async def test_the_time_of_arrival_is_told_in_microseconds(service: Service) -> None:
    ada = await service.organizer()
    before = datetime.now(UTC)
    [poll] = await register(service, ada, await ada.create_event(), "ann")

    received_at = (await ada.get(poll)).json()["data"]["received_at"]

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", received_at)
    assert before <= datetime.fromisoformat(received_at) <= datetime.now(UTC)


@requirement("registrations.received-at", "registrations.list")
async def test_who_came_later_was_received_later(service: Service) -> None:
    ada = await service.organizer()
    polls = await register(service, ada, await ada.create_event(), *NAMES)

    registrations = listed(await ada.get("/api/registrations"), Registration)

    assert [each.user_id for each in registrations] == [handle_in(poll) for poll in polls]
    received = [each.received_at for each in registrations]
    assert received == sorted(set(received))


@requirement("registrations.list", "registrations.fields")
async def test_the_list_shows_registrations_as_they_are_read_one_by_one(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=1)
    polls = await register(service, ada, event, "ann", "bob")

    response = await ada.get("/api/registrations")

    assert [each.status for each in listed(response, Registration)] == ["registered", "waitlisted"]
    assert response.json()["data"] == [(await ada.get(poll)).json()["data"] for poll in polls]


@requirement("registrations.list", "auth.organizer-scope", "auth.admin")
async def test_an_organizer_lists_the_registrations_of_its_own_events_and_an_admin_all(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    first, second = await ada.create_event(), await ben.create_event()
    await register(service, ada, first, "ann")
    await register(service, ben, second, "ann")

    seen = [
        [each.event_id for each in listed(await client.get("/api/registrations"), Registration)]
        for client in (ada, ben, await service.admin())
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

    assert listed(await ada.get("/api/registrations"), Registration) == []
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 0


@requirement("registrations.get", "registrations.status")
async def test_a_registration_that_got_no_place_says_so(service: Service) -> None:
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

    polls = await register(service, ada, event, *NAMES)

    assert await statuses(ada, polls) == outcome


@requirement("registrations.status", "events.update")
async def test_more_seats_go_to_those_who_have_waited_longest(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=3)
    polls = await register(service, ada, event, *NAMES)

    await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 3}})

    assert await statuses(ada, polls) == ["registered", "registered", "registered", "waitlisted"]


@requirement("registrations.update")
@pytest.mark.parametrize(
    "change",
    [{"status": "waitlisted"}, {"amount_paid": 7}, {"amount_paid": 0}, {"status": "waitlisted", "amount_paid": 9}, {}],
)
async def test_a_change_sets_what_is_given_and_keeps_the_rest(service: Service, change: dict[str, Any]) -> None:
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
async def test_a_seat_given_up_goes_to_the_first_who_waits(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=2)
    polls = await register(service, ada, event, "ann", "bob", "cal")

    await ada.patch(polls[0], {"registration": {"status": "waitlisted"}})

    assert await statuses(ada, polls) == ["waitlisted", "registered", "waitlisted"]


@requirement("registrations.update")
async def test_nobody_is_seated_beyond_capacity(service: Service) -> None:
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
        ("event_id", 1),
        ("received_at", "2020-01-01T00:00:00Z"),
    ],
)
async def test_a_change_that_is_not_acceptable_changes_nothing(service: Service, name: str, value: Any) -> None:
    ada = await service.organizer()
    [poll] = await register(service, ada, await ada.create_event(), "ann")
    before = (await ada.get(poll)).json()

    assert failing_fields(await ada.patch(poll, {"registration": {name: value}})) == {name}
    assert (await ada.get(poll)).json() == before


@requirement("registrations.update", "registrations.get.pending")
async def test_a_registration_that_waits_cannot_be_changed(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="ann@example.com")

    response = await ada.patch(poll, {"registration": {"status": "waitlisted"}})

    assert refusal(response) == (404, "registration_pending")


@requirement("registrations.delete")
async def test_removing_answers_204_without_a_body_and_the_registration_is_gone(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [poll] = await register(service, ada, event, "ann")

    response = await ada.delete(poll)

    assert (response.status_code, response.content) == (204, b"")
    assert refusal(await ada.get(poll)) == (404, "not_found")
    assert listed(await ada.get("/api/registrations"), Registration) == []
    assert one(await ada.get(f"/api/events/{event['id']}"), Event).registration_count == 0


@requirement("registrations.delete", "errors.not-found")
async def test_a_registration_is_removed_once(service: Service) -> None:
    ada = await service.organizer()
    [poll] = await register(service, ada, await ada.create_event(), "ann")
    await ada.delete(poll)

    assert refusal(await ada.delete(poll)) == (404, "not_found")


@requirement("registrations.delete")
async def test_a_freed_seat_goes_to_the_first_who_waits(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=2)
    polls = await register(service, ada, event, "ann", "bob", "cal")

    await ada.delete(polls[0])

    assert await statuses(ada, polls[1:]) == ["registered", "waitlisted"]


@requirement("registrations.delete", "registrations.get.pending")
async def test_a_registration_removed_while_it_waits_is_never_seated(service: Service) -> None:
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
    [kept] = await register(service, ada, await ada.create_event(), "ann")

    await ada.delete(gone)

    assert await statuses(ada, [kept]) == ["registered"]
