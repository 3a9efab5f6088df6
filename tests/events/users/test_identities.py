"""What an organizer learns of a person: only what was registered with it."""

from typing import Any

import pytest

from tests.events.agents.samples import agent
from tests.helpers.events_service import Client, Service

NOBODY = "strangrr"


async def known_to(organizer: Client, service: Service, email: str, **event: Any) -> str:
    """Register a person for a new event of an organizer; the person's handle."""
    poll = await organizer.register((await organizer.create_event(**event))["id"], email=email)
    await service.settle()
    return poll.rpartition("/")[2]


async def person(organizer: Client, email: str) -> dict[str, Any]:
    """The person with an address, as an organizer's list shows it."""
    people = (await organizer.get("/api/users")).json()["data"]
    return next(row for row in people if row["email"] == email)


async def by_handle(organizer: Client, handle: str) -> Any:
    event = await organizer.create_event()
    answer = await organizer.post("/api/registrations", {"registration": {"event_id": event["id"], "user_id": handle}})
    return answer.status_code, answer.json()


async def by_handle_through_a_tool(service: Service, organizer: Client, handle: str) -> str:
    event = await organizer.create_event()
    result = await agent(service, organizer).call("create_registration", event_id=event["id"], user_id=handle)
    return result["content"][0]["text"]


async def test_a_handle_that_only_another_organizer_knows_is_refused_as_unknown(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    ann = await known_to(ada, service, "ann@example.com")

    status, refusal = await by_handle(eve, ann)

    assert (status, refusal) == await by_handle(eve, NOBODY)
    assert status == 422
    assert [*refusal["errors"]] == ["user_id"]
    assert await by_handle_through_a_tool(service, eve, ann) == await by_handle_through_a_tool(service, eve, NOBODY)
    assert await service.settle() == 0
    assert "ann@example.com" not in (await eve.get("/api/users")).text


async def test_a_handle_of_another_organizer_is_refused_as_unknown(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    [(handle,)] = await service.run_sql("select public_id from users where id = %(id)s", id=ada.id)

    assert await by_handle(eve, handle) == await by_handle(eve, NOBODY)


@pytest.mark.parametrize("outcome", ["registered", "waitlisted", "rejected", "pending"])
async def test_a_handle_of_a_person_once_registered_with_the_organizer_is_accepted(
    service: Service, outcome: str
) -> None:
    ada = await service.organizer()
    room = 1 if outcome == "waitlisted" else 0
    event = await ada.create_event(capacity=1, waitinglist_capacity=room)
    if outcome != "registered":
        await ada.register(event["id"], email="first@example.com")
    ann = (await ada.register(event["id"], email="ann@example.com")).rpartition("/")[2]
    if outcome != "pending":
        await service.settle()

    assert (await by_handle(ada, ann))[0] == 202
    [(status,)] = await service.run_sql(
        "select r.status from registrations r join users on users.id = user_id where email = 'ann@example.com' "
        "and event_id = %(event_id)s",
        event_id=event["id"],
    )
    assert status == outcome


async def test_an_organizer_can_register_itself_by_its_handle(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com")
    handle = (await person(ada, "ada@example.com"))["public_id"]

    assert (await by_handle(ada, handle))[0] == 202


async def test_a_handle_is_unknown_after_the_last_registration_with_the_organizer_is_removed(
    service: Service,
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    await known_to(ben, service, "ann@example.com")
    poll = await ada.register((await ada.create_event())["id"], email="ann@example.com")
    await ada.delete(poll)

    assert await by_handle(ada, poll.rpartition("/")[2]) == await by_handle(ada, NOBODY)


async def test_an_admin_registers_any_person_by_handle(service: Service) -> None:
    ada, ben, admin = await service.organizer(), await service.organizer(), await service.admin()
    ann = await known_to(ada, service, "ann@example.com")
    event = await ben.create_event()

    await admin.register(event["id"], user_id=ann)

    assert await service.settle() == 1


async def test_registering_an_address_does_not_reveal_that_it_is_an_organizer(service: Service) -> None:
    """Not its name, slug or role: a caller who registers an address learns only the handle."""
    ada = await service.organizer("Ada Events", email="ada@example.com", slug="ada-events")
    eve = await service.organizer("Eve Events", email="eve@example.com")
    for email in ("ada@example.com", "zoe@example.com"):
        await known_to(eve, service, email)

    known, unknown = await person(eve, "ada@example.com"), await person(eve, "zoe@example.com")
    registrations = (await eve.get("/api/registrations")).json()["data"]

    assert {**known, "id": 0, "public_id": ""} == {**unknown, "id": 0, "public_id": "", "email": "ada@example.com"}
    assert (known["name"], known["role"], known["slug"]) == (None, "user", None)
    assert [registration["name"] for registration in registrations] == [None, None]
    tools = [
        (await agent(service, eve).call(tool))["content"][0]["text"] for tool in ("list_users", "list_registrations")
    ]
    for text in ((await eve.get("/api/users")).text, (await eve.get("/api/registrations")).text, *tools):
        assert "Ada Events" not in text
        assert "ada-events" not in text
    assert (await person(ada, "ada@example.com"))["name"] == "Ada Events"


async def test_an_organizer_registered_for_its_own_event_sees_its_own_data(service: Service) -> None:
    ada = await service.organizer("Ada Events", email="ada@example.com", slug="ada-events")
    await known_to(ada, service, "ada@example.com")

    seen = await person(ada, "ada@example.com")

    assert (seen["id"], seen["name"], seen["role"], seen["slug"]) == (ada.id, "Ada Events", "organizer", "ada-events")
    assert [registration["name"] for registration in (await ada.get("/api/registrations")).json()["data"]] == [
        "Ada Events"
    ]


async def test_an_admin_sees_all_data_of_every_user(service: Service) -> None:
    await service.organizer("Ada Events", email="ada@example.com", slug="ada-events")
    eve, admin = await service.organizer(), await service.admin()
    handle = await known_to(eve, service, "ada@example.com")

    seen = await person(admin, "ada@example.com")
    [registration] = (await admin.get("/api/registrations")).json()["data"]

    assert (seen["name"], seen["role"], seen["slug"]) == ("Ada Events", "organizer", "ada-events")
    assert seen["public_id"] == handle
    assert (registration["email"], registration["name"]) == ("ada@example.com", "Ada Events")
    polled = await admin.get(f"/api/registrations/{registration['event_id']}/{handle}")
    assert polled.json()["data"] == registration
