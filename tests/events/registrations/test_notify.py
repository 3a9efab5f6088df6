"""Whether people are mailed about a registration: as its request says, or else as the operator has set."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.events.agents.samples import agent
from tests.helpers.events_service import Client, Service, running_events


async def mailed_people(service: Service) -> dict[str, bool]:
    """Whether each person is mailed about the registration, by address."""
    return dict(await service.run_sql("select email, notify from registrations join users on users.id = user_id"))


async def register_guests(client: Client) -> None:
    """An event with a guest who is to be mailed, one who is not, and two of whom nothing is said."""
    event = await client.create_event()
    answers: dict[str, dict[str, Any]] = {"yes": {"notify": True}, "no": {"notify": False}, "null": {"notify": None}}
    for name, fields in {**answers, "silent": {}}.items():
        await client.register(event["id"], email=f"{name}@example.com", **fields)


async def test_people_are_mailed_unless_the_request_says_otherwise(service: Service) -> None:
    await register_guests(await service.organizer())

    assert await mailed_people(service) == {
        "yes@example.com": True,
        "no@example.com": False,
        "null@example.com": True,
        "silent@example.com": True,
    }


async def test_a_service_with_mails_turned_off_mails_only_people_whose_request_says_so(
    service_without_mails: Service,
) -> None:
    await register_guests(await service_without_mails.organizer())

    assert await mailed_people(service_without_mails) == {
        "yes@example.com": True,
        "no@example.com": False,
        "null@example.com": False,
        "silent@example.com": False,
    }


@pytest.fixture
async def service_without_mails(settings: Settings) -> AsyncIterator[Service]:
    """The service of an operator who has turned mails off."""
    async with running_events(settings.model_copy(update={"notify": False})) as service:
        yield service


def test_the_operator_turns_mails_off_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, meant in (("true", True), ("false", False)):
        monkeypatch.setenv("API_REGISTRATION_NOTIFY", value)
        assert Settings().notify is meant  # pyright: ignore[reportCallIssue]


async def test_an_agent_can_keep_people_from_being_mailed(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    await agent(service, ada).call("create_registration", event_id=event["id"], email="ann@example.com", notify=False)

    assert await mailed_people(service) == {"ann@example.com": False}


async def test_registering_again_changes_nothing_but_a_new_try_says_it_anew(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await ada.register(event["id"], email="ann@example.com", notify=False)
    await ada.register(event["id"], email="ben@example.com", notify=False)
    await service.settle()

    await ada.patch(f"/api/events/{event['id']}", {"event": {"waitinglist_capacity": 1}})
    for name in ("ann", "ben"):
        await ada.register(event["id"], email=f"{name}@example.com", notify=True)

    assert await mailed_people(service) == {"ann@example.com": False, "ben@example.com": True}


async def test_a_changed_registration_keeps_whether_people_are_mailed(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(waitinglist_capacity=1)
    poll = await ada.register(event["id"], email="ann@example.com", notify=False)
    await service.settle()

    for change in ({"status": "waitlisted"}, {"status": "registered"}, {"amount_paid": 5}):
        assert (await ada.patch(poll, {"registration": change})).status_code == 200

    assert await mailed_people(service) == {"ann@example.com": False}


@pytest.mark.parametrize("wrong", [0, 1, "true", "", [], {}, 1.0])
async def test_a_value_of_notify_that_is_no_boolean_is_refused(service: Service, wrong: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    body = {"registration": {"event_id": event["id"], "email": "ann@example.com", "notify": wrong}}
    refusal = await ada.post("/api/registrations", body)

    assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["notify"])
    assert await mailed_people(service) == {}
