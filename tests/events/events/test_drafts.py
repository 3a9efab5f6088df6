"""Drafts: only their organizer sees them; publishing shows them at once, and can be undone before registrations."""

import asyncio
from typing import Any

import pytest

from holdfast.events.events.recurrence import next_to_continue
from holdfast.events.pages.event.cache import find_linked_events
from holdfast.events.pricing.operations import update_prices
from holdfast.events.problems import EVENT_HAS_REGISTRATIONS
from holdfast.events.seats import intake
from tests.events.agents.samples import agent
from tests.events.events.series import all_events, continue_series_now, create_past_series
from tests.events.pages.reading import readable_text
from tests.helpers.agents import problem_of
from tests.helpers.event_visitor import Visitor, field_value
from tests.helpers.events_service import Client, Service, event_fields, eventually, publish_event

MOVING = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000}


def public_paths(event: dict[str, Any]) -> list[str]:
    """The addresses at which people and programs see an event."""
    id = event["id"]
    return [
        event["public_url"],
        f"{event['public_url']}?lang=de",
        f"/events/{id}/embed",
        f"/events/{id}/registrations",
        f"/events/{id}/calendar.ics",
    ]


async def statuses(service: Service, event: dict[str, Any]) -> list[int]:
    return [(await service.http.get(path)).status_code for path in public_paths(event)]


async def test_an_event_is_published_unless_it_is_created_as_a_draft(service: Service) -> None:
    ada = await service.organizer()

    created = [await ada.create_event(**fields) for fields in ({}, {"published": None}, {"published": True})]
    draft = await ada.create_event(published=False)

    assert [event["published"] for event in created] == [True] * 3
    assert (draft["published"], draft["status"]) == (False, "active")
    assert [event["agent"]["hosted_registration_ready"] for event in (*created, draft)] == [True, True, True, False]


async def test_an_organizer_sees_its_drafts_and_no_other_organizer_does(service: Service) -> None:
    ada, ben, admin = await service.organizer(), await service.organizer(), await service.admin()
    draft = await ada.create_event(published=False)
    path = f"/api/events/{draft['id']}"

    assert [event["id"] for event in await all_events(ada)] == [draft["id"]]
    assert [event["id"] for event in await all_events(admin)] == [draft["id"]]
    assert await all_events(ben) == []
    assert [(await client.get(path)).status_code for client in (ada, admin, ben)] == [200, 200, 403]


async def test_a_draft_is_answered_with_404_to_other_callers(service: Service) -> None:
    ada = await service.organizer()
    public, draft = await ada.create_event(title="Etching"), await ada.create_event(title="Secret", published=False)

    assert await statuses(service, draft) == [404] * len(public_paths(draft))
    page = await service.http.get(f"/organizers/{ada.slug}")

    assert ("Etching" in readable_text(page), "Secret" in readable_text(page)) == (True, False)
    assert await statuses(service, public) == [200, 200, 200, 303, 200]
    missing = await service.http.get(f"/organizers/{ada.slug}/events/4711")
    hidden = await service.http.get(draft["public_url"])
    assert readable_text(hidden).replace(str(draft["id"]), "4711") == readable_text(missing)


@pytest.mark.usefixtures("only_notices_end_caches")
async def test_a_draft_that_is_published_is_shown_at_once_and_goes_when_it_is_a_draft_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(published=False)
    for published in (False, True, False, True):
        event = await publish_event(ada, event, published)

        expected = [200, 200, 200, 303, 200] if published else [404] * 5
        assert (event["published"], await statuses(service, event)) == (published, expected)
        assert (event["title"] in readable_text(await service.http.get(f"/organizers/{ada.slug}"))) == published


async def test_an_agent_makes_and_publishes_drafts(service: Service) -> None:
    ada = await service.organizer()

    made = await agent(service, ada).call("create_event", **event_fields(published=False))
    id = made["structuredContent"]["id"]
    published = await agent(service, ada).call("update_event", event_id=id, published=True)

    assert (made["structuredContent"]["published"], published["structuredContent"]["published"]) == (False, True)


@pytest.mark.parametrize("wrong", ["yes", 1, None, []])
async def test_a_value_of_published_that_is_no_boolean_is_refused(service: Service, wrong: Any) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    refusal = await ada.patch(f"/api/events/{event['id']}", {"event": {"published": wrong}})

    assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["published"])


# Registrations


async def test_a_draft_takes_no_registrations(service: Service) -> None:
    ada, ben, admin = await service.organizer(), await service.organizer(), await service.admin()
    event = await ada.create_event()
    visitor = Visitor(service)
    token = field_value(await visitor.open(event["id"]), "token")
    await publish_event(ada, event, False)
    body = {"registration": {"event_id": event["id"], "email": "ann@example.com"}}

    for client in (ada, admin):
        refusal = await client.post("/api/registrations", body)
        assert (refusal.status_code, refusal.json()["code"]) == (422, "validation_failed")
        assert refusal.json()["errors"] == {"event_id": ["is a draft; publish it, then people can register"]}
    called = await agent(service, ada).call("create_registration", event_id=event["id"], email="ann@example.com")
    assert [*problem_of(called)["errors"]] == ["event_id"]
    assert (await ben.post("/api/registrations", body)).status_code == 403
    typed = await visitor.post(event["id"], token=token, email="ann@example.com")
    assert typed.status_code == 404

    assert await service.run_sql("select from registrations") == []
    assert await service.run_sql("select from users where email = 'ann@example.com'") == []
    assert await service.run_sql("select from mails") == []


async def test_an_event_with_registrations_does_not_become_a_draft_again(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    path = f"/api/events/{event['id']}"
    poll = await ada.register(event["id"], email="ann@example.com")

    pending = await ada.patch(path, {"event": {"published": False, "title": "Etching"}})
    await service.settle()
    seated = await ada.patch(path, {"event": {"published": False}})
    called = await agent(service, ada).call("update_event", event_id=event["id"], published=False)

    message = f"Event {event['id']} has registrations, so it cannot become a draft again."
    for refusal in (pending, seated):
        assert (refusal.status_code, refusal.json()["code"]) == (422, EVENT_HAS_REGISTRATIONS.code)
        assert (refusal.json()["error"], refusal.json()["errors"]) == (message, {"published": [message]})
    assert problem_of(called)["code"] == EVENT_HAS_REGISTRATIONS.code
    assert await statuses(service, event) == [200, 200, 200, 303, 200]
    assert [listed["title"] for listed in await all_events(ada)] == [event["title"]]

    await ada.delete(poll)
    assert (await publish_event(ada, event, False))["published"] is False


async def test_an_event_becomes_no_draft_while_a_registration_is_being_stored(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    async with service.database.transaction() as tx:
        [stored] = await intake.store_pending(tx, [intake.IntakeRequest(ada.id, event["id"], email="ann@example.com")])
        request = ada.patch(f"/api/events/{event['id']}", {"event": {"published": False}})
        meanwhile = asyncio.create_task(request)
        await eventually(lambda: service.run_sql("select from pg_locks where not granted"))
    refusal = await meanwhile

    assert (stored.is_stored, refusal.status_code) == (True, 422)
    assert refusal.json()["code"] == EVENT_HAS_REGISTRATIONS.code


async def test_a_registration_while_the_event_becomes_a_draft_is_refused(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    body = {"registration": {"event_id": event["id"], "email": "ann@example.com"}}

    async with service.database.transaction() as tx:
        await tx.tuples("select from events for update")
        await tx.run("update events set published = false")
        meanwhile = asyncio.create_task(ada.post("/api/registrations", body))
        await eventually(lambda: service.run_sql("select from pg_locks where not granted"))
    refusal = await meanwhile

    assert (refusal.status_code, [*refusal.json()["errors"]]) == (422, ["event_id"])
    assert await service.run_sql("select from registrations") == []


async def test_the_schema_refuses_seats_at_a_draft(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()

    with pytest.raises(Exception, match="nobody_has_a_place_at_a_draft"):
        await service.run_sql("update events set published = false")


async def test_a_registration_that_an_older_version_stored_for_a_draft_is_rejected(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")
    await service.run_sql("update events set published = false")

    assert await service.settle() == 1

    assert await service.run_sql("select status::text, reason from registrations") == [("rejected", "event_cancelled")]


# Prices and series


async def history(client: Client, event: dict[str, Any]) -> list[tuple[str, int]]:
    entries = (await client.get(f"/api/events/{event['id']}/price_history")).json()["data"]
    return [(entry["reason"], entry["new_price"]) for entry in entries]


async def test_the_price_of_a_draft_does_not_move_and_begins_when_it_is_published(service: Service) -> None:
    ada = await service.organizer()
    [(soon,)] = await service.run_sql("select now() + interval '100 days'")
    event = await ada.create_event(**MOVING, published=False, datetime=soon.isoformat())
    await service.run_sql("update events set inserted_at = now() - interval '50 days'")

    assert await service.database.transact(update_prices) == 0
    edited = await publish_event(ada, event, False, price=3000, capacity=7)
    assert (edited["current_price"], await history(ada, event)) == (3000, [("init", 3000)])
    published = await publish_event(ada, event)

    assert (published["current_price"], await history(ada, event)) == (3000, [("init", 3000)])
    [(recent,)] = await service.run_sql("select inserted_at > now() - interval '1 hour' from events")
    assert recent
    [(later,)] = await service.run_sql("select now() + interval '50 days'")
    assert await service.database.transact(lambda tx: update_prices(tx, later)) == 1
    assert [reason for reason, _ in await history(ada, event)] == ["tick", "init"]


async def test_an_event_that_becomes_a_draft_again_has_its_first_price(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**MOVING)
    [(later,)] = await service.run_sql("select now() + interval '15 days'")
    assert await service.database.transact(lambda tx: update_prices(tx, later)) == 1

    draft = await publish_event(ada, event, False)

    assert (draft["current_price"], await history(ada, event)) == (2500, [("init", 2500)])


async def test_a_change_of_anything_else_keeps_the_history_of_a_draft(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(**MOVING, published=False)
    before = await service.run_sql("select to_jsonb(price_changes) from price_changes")

    await publish_event(ada, event, False, title="Etching")

    assert await service.run_sql("select to_jsonb(price_changes) from price_changes") == before


async def test_a_series_continues_only_from_published_events(service: Service) -> None:
    ada = await service.organizer()
    draft = await create_past_series(service, ada, published=False)

    assert (await continue_series_now(service), len(await all_events(ada))) == (0, 1)
    assert await service.database.read(next_to_continue) is None
    await publish_event(ada, draft)

    assert (await continue_series_now(service), len(await all_events(ada))) == (1, 2)
    assert [event["published"] for event in await all_events(ada)] == [True, True]


async def test_a_link_to_a_past_occurrence_never_leads_to_a_draft(service: Service) -> None:
    ada = await service.organizer()
    first = await create_past_series(service, ada)
    await continue_series_now(service)
    _, ahead = await all_events(ada)

    await publish_event(ada, ahead, False)

    ids = [first["id"], ahead["id"]]
    linked = await service.database.read(lambda reader: find_linked_events(reader, ids))
    assert [(linked_event.requested_id, linked_event.event.id) for linked_event in linked] == [
        (first["id"], first["id"])
    ]
    await publish_event(ada, ahead)
    assert (await service.http.get(first["public_url"])).text.count(f"/events/{ahead['id']}/registrations") == 1
