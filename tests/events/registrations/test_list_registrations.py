"""GET /api/registrations: organizers list the registrations of all their events, or of one."""

from typing import Any

from holdfast.events.seats import intake
from tests.events.agents.samples import agent
from tests.helpers.events_service import Client, Service


async def listed_addresses(client: Client, **query: Any) -> list[str]:
    """The addresses of those who are listed."""
    answer = await client.get("/api/registrations", params=query)
    assert answer.status_code == 200, answer.text
    return [registration["email"] for registration in answer.json()["data"]]


async def two_events(service: Service, ada: Client) -> tuple[int, int]:
    """Ann and Ben are registered for the first event, Ben and Cal for the second."""
    first, second = (await ada.create_event())["id"], (await ada.create_event())["id"]
    for event, name in ((first, "ann"), (second, "ben"), (first, "ben"), (second, "cal")):
        await ada.register(event, email=f"{name}@example.com")
    await service.settle()
    return first, second


async def test_a_registration_in_the_list_has_address_and_handle_of_its_person(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    poll = await ada.register(event["id"], email="Ann@Example.com")
    await service.settle()
    await service.run_sql("update users set name = 'Ann Lee' where email = 'ann@example.com'")

    listed, [polled] = (
        (await ada.get("/api/registrations")).json()["data"],
        [(await ada.get(poll)).json()["data"]],
    )
    changed = (await ada.patch(poll, {"registration": {"amount_paid": 0}})).json()["data"]

    assert (polled["email"], polled["name"]) == ("ann@example.com", "Ann Lee")
    assert listed == [polled] == [changed]


async def by_the_form(service: Service, event_id: int, name: str) -> None:
    """Ann registers by the public form, and gives a name."""
    ann = intake.IntakeRequest(None, event_id, email="ann@example.com", name=name)
    await service.database.transact(lambda tx: intake.store_pending(tx, [ann]))
    await service.settle()


async def test_the_name_written_into_the_form_is_shown_to_that_organizer_alone(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    one, other, of_eve = [(await client.create_event())["id"] for client in (ada, ada, eve)]
    await by_the_form(service, one, "Ann of the studio")
    for client, event in ((ada, other), (eve, of_eve)):
        await client.register(event, email="ann@example.com")
    await service.settle()

    assert await names(ada) == {one: "Ann of the studio", other: None}
    assert await names(eve) == {of_eve: None}
    assert "Ann of the studio" not in (await ada.get("/api/users")).text + (await eve.get("/api/users")).text


async def test_the_name_written_into_the_form_goes_before_that_of_the_account(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    one, of_eve = (await ada.create_event())["id"], (await eve.create_event())["id"]
    await by_the_form(service, one, "Annie")
    await eve.register(of_eve, email="ann@example.com")
    await service.settle()
    await service.run_sql("update users set name = 'Ann Lee' where email = 'ann@example.com'")

    assert (await names(ada), await names(eve)) == ({one: "Annie"}, {of_eve: "Ann Lee"})
    assert await names(await service.admin()) == {one: "Annie", of_eve: "Ann Lee"}


async def names(client: Client) -> dict[int, str | None]:
    """The names that a reader of registrations sees, by event: the list and each registration say the same."""
    listed = (await client.get("/api/registrations")).json()["data"]
    read = [
        (await client.get(f"/api/registrations/{registration['event_id']}/{registration['user_id']}")).json()
        for registration in listed
    ]
    assert listed == [registration["data"] for registration in read]
    return {registration["event_id"]: registration["name"] for registration in listed}


async def test_users_and_registrations_name_a_person_by_the_same_handle(service: Service) -> None:
    ada = await service.organizer(email="ada@example.com")
    poll = await ada.register((await ada.create_event())["id"], email="ann@example.com")
    await service.settle()

    handles = {
        registration["email"]: registration["public_id"]
        for registration in (await ada.get("/api/users")).json()["data"]
    }
    [organizer] = (await ada.get("/api/organizers")).json()["data"]

    assert handles["ann@example.com"] == poll.rpartition("/")[2]
    assert handles["ada@example.com"] == organizer["public_id"]


async def test_an_event_lists_only_its_own_registrations_in_order_of_arrival(service: Service) -> None:
    ada = await service.organizer()
    first, second = await two_events(service, ada)

    assert await listed_addresses(ada, event_id=first) == ["ann@example.com", "ben@example.com"]
    assert await listed_addresses(ada, event_id=second) == ["ben@example.com", "cal@example.com"]
    assert await listed_addresses(ada, event_id=second, offset=1) == ["cal@example.com"]
    assert len(await listed_addresses(ada)) == 4
    assert await listed_addresses(await service.admin(), event_id=first) == ["ann@example.com", "ben@example.com"]


async def test_a_list_of_registrations_is_paged_without_gaps_over_seats_and_waiting_list(
    service: Service,
) -> None:
    ada = await service.organizer()
    event = (await ada.create_event(capacity=3, waitinglist_capacity=2))["id"]
    polls = [await ada.register(event, email=f"{name}@example.com") for name in "abcdefg"]
    await service.settle()
    # The person with the seat arrived after one who waits, and the last two have no place.
    await ada.patch(polls[0], {"registration": {"status": "waitlisted"}})
    await ada.register((await ada.create_event())["id"], email="z@example.com")
    await service.settle()

    for filters, names in (({"event_id": event}, "abcde"), ({}, "abcdez")):
        for client in (ada, await service.admin()):
            pages = [await listed_addresses(client, limit=2, offset=offset, **filters) for offset in range(0, 8, 2)]
            assert [email[0] for page in pages for email in page] == [*names]
            assert pages[-1] == []


async def test_an_event_that_is_handed_over_takes_its_registrations_along(service: Service) -> None:
    ada, eve, admin = await service.organizer(), await service.organizer(), await service.admin()
    first, _ = await two_events(service, ada)

    handed = await admin.patch(f"/api/events/{first}", {"event": {"organizer_id": eve.id}})
    await eve.register(first, email="dan@example.com")
    await service.settle()

    assert handed.status_code == 200, handed.text
    assert await listed_addresses(eve) == ["ann@example.com", "ben@example.com", "dan@example.com"]
    assert await listed_addresses(ada) == ["ben@example.com", "cal@example.com"]
    users = [user["email"] for user in (await ada.get("/api/users")).json()["data"]]
    assert [user for user in users if user.endswith("@example.com")][-2:] == ["ben@example.com", "cal@example.com"]
    assert "ann@example.com" not in users


async def test_a_page_of_registrations_of_one_event_says_whether_more_follow(service: Service) -> None:
    ada = await service.organizer()
    first, _ = await two_events(service, ada)

    answer = await ada.get("/api/registrations", params={"event_id": first, "limit": 1})

    assert answer.json()["pagination"] == {"count": 1, "offset": 0, "limit": 1, "has_more": True}


async def test_the_tool_lists_the_registrations_of_one_event(service: Service) -> None:
    ada = await service.organizer()
    _, second = await two_events(service, ada)

    result = await agent(service, ada).call("list_registrations", event_id=second)

    listed = result["structuredContent"]["data"]
    assert [registration["email"] for registration in listed] == ["ben@example.com", "cal@example.com"]


async def test_registrations_for_an_event_of_another_organizer_cannot_be_listed(service: Service) -> None:
    ada, eve = await service.organizer(), await service.organizer()
    first, _ = await two_events(service, ada)

    refusal = await eve.get("/api/registrations", params={"event_id": first})
    answer = await agent(service, eve).call("list_registrations", event_id=first)

    assert (refusal.status_code, refusal.json()["code"]) == (403, "forbidden")
    assert answer["isError"]
    assert "ann@example.com" not in refusal.text + answer["content"][0]["text"]


async def test_an_event_that_does_not_exist_is_not_found(service: Service) -> None:
    ada = await service.organizer()

    for client in (ada, await service.admin()):
        refusal = await client.get("/api/registrations", params={"event_id": 4711})
        assert (refusal.status_code, refusal.json()["code"]) == (404, "not_found")


async def test_an_event_id_that_is_no_number_is_refused(service: Service) -> None:
    refusal = await (await service.organizer()).get("/api/registrations", params={"event_id": "first"})

    assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["event_id"])
