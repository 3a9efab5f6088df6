"""An agent that asks a person first: its calls wait, and run once when the person approves what the page has shown."""

import asyncio
import re

import pytest

from holdfast.accounts import sessions
from holdfast.accounts.agents.requests import MAX_WAITING_REQUESTS
from holdfast.events.agents.actions import STORED_OPERATIONS
from holdfast.events.api import OPERATIONS as TABLE
from tests.events.agents.asking import NIGHT, decide, open_asking_scene
from tests.events.console.organizer_scene import hidden_field, open_organizer_scene
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Client, Service, event_fields
from tests.helpers.form_browser import main_text


async def count(service: Service, table: str) -> int:
    [(number,)] = await service.run_sql(f"select count(*) from {table}")
    return number


async def test_a_call_waits_for_the_person_and_then_its_repetition_has_the_answer(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    event = await scene.ada.create_event(title="Jazz night", capacity=20)

    waiting = problem_of(await agent.call("update_event", event_id=event["id"], capacity=30))

    assert (waiting["code"], waiting["status"], waiting["retryable"]) == ("approval_required", "waiting", True)
    assert (await scene.ada.get(f"/api/events/{event['id']}")).json()["data"]["capacity"] == 20
    again = problem_of(await agent.call("update_event", event_id=event["id"], capacity=30))
    assert again["request_id"] == waiting["request_id"]
    path = re.sub("^https?://[^/]+", "", waiting["approve_url"])
    page = main_text(await scene.browser.get(path))
    assert "Claude wants to change Jazz night" in page
    assert "Seats 20 → 30" in page
    assert "1 request waits for you" in main_text(await scene.browser.get("/console/agents"))

    assert await decide(scene, path, "approve") == 303

    assert (await scene.ada.get(f"/api/events/{event['id']}")).json()["data"]["capacity"] == 30
    answer = await agent.call("update_event", event_id=event["id"], capacity=30)
    assert answer["structuredContent"]["capacity"] == 30
    assert "Claude changed Jazz night" in main_text(await scene.browser.get("/console/agents"))


async def test_the_time_of_an_event_to_create_is_in_its_zone_or_else_in_that_of_the_browser(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    night = NIGHT | {"datetime": "2031-07-01T18:00:00Z", "pricing_mode": "free", "price": 0}
    addresses = [
        f"/console/agents/requests/{problem_of(await agent.call('create_event', **night | zone))['request_id']}"
        for zone in ({"timezone": "Europe/Berlin"}, {})
    ]

    zoned, plain = [await scene.browser.get(address) for address in addresses]

    assert "Date and time July 1, 2031, 8:00 PM CEST" in main_text(zoned).replace("\u202f", " ")
    assert '<time datetime="2031-07-01T18:00:00+00:00" data-local="exact">' in plain.text
    assert "Price free" in main_text(plain)
    assert "Kind of price" not in main_text(plain)


async def test_over_rest_it_is_a_conflict_with_the_address_of_the_request(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    event = await scene.ada.create_event()
    body = {"registration": {"event_id": event["id"], "email": "ben@example.com"}}
    headers = {"X-API-Key": agent.key or "", "Idempotency-Key": "once"}

    refusal = await service.http.post("/api/registrations", json=body, headers=headers)

    assert (refusal.status_code, refusal.json()["code"]) == (409, "approval_required")
    assert await count(service, "registrations") == 0
    await decide(scene, f"/console/agents/requests/{refusal.json()['request_id']}", "approve")
    first = await service.http.post("/api/registrations", json=body, headers=headers)
    second = await service.http.post("/api/registrations", json=body, headers=headers)
    assert (first.status_code, first.content) == (202, second.content)
    assert await count(service, "registrations") == 1


async def test_a_declined_request_changes_nothing_and_its_agent_reads_that_it_was_declined(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    path = f"/console/agents/requests/{waiting['request_id']}"

    assert await decide(scene, path, "decline") == 303

    declined = problem_of(await agent.call("create_event", **NIGHT))
    assert (declined["code"], declined["retryable"]) == ("approval_declined", False)
    assert (await scene.post(path, do="approve", seen="")).status_code == 409
    assert await count(service, "events") == 0


async def test_a_request_about_something_that_changed_since_is_shown_again_instead_of_run(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    event = await scene.ada.create_event(capacity=20)
    waiting = problem_of(await agent.call("update_event", event_id=event["id"], capacity=30))
    path = f"/console/agents/requests/{waiting['request_id']}"
    seen = hidden_field(await scene.browser.get(path), "seen")
    await scene.ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 25}})

    refusal = await scene.post(path, do="approve", seen=seen)

    assert refusal.status_code == 409
    assert "Something has changed since you looked" in refusal.text
    assert "Seats 25 → 30" in main_text(refusal)
    assert (await scene.ada.get(f"/api/events/{event['id']}")).json()["data"]["capacity"] == 25
    assert await decide(scene, path, "approve", hidden_field(refusal, "seen")) == 303
    assert (await scene.ada.get(f"/api/events/{event['id']}")).json()["data"]["capacity"] == 30


async def test_many_clicks_at_once_do_it_once(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    path = f"/console/agents/requests/{waiting['request_id']}"
    seen = hidden_field(await scene.browser.get(path), "seen")

    statuses = await asyncio.gather(*(decide(scene, path, "approve", seen) for _ in range(8)))

    assert statuses.count(303) == 1
    assert statuses.count(409) == 7
    assert await count(service, "events") == 1


async def test_a_call_that_is_refused_when_it_is_approved_goes_on_waiting(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    event = await scene.ada.create_event()
    waiting = problem_of(await agent.call("create_registration", event_id=event["id"], email="ben@example.com"))
    path = f"/console/agents/requests/{waiting['request_id']}"
    await scene.ada.delete(f"/api/events/{event['id']}")

    page = await scene.browser.get(path)
    refusal = await scene.post(path, do="approve", seen=hidden_field(page, "seen"))

    assert refusal.status_code == 409
    assert "This is not possible now, so nothing was changed" in refusal.text
    assert await count(service, "registrations") == 0
    assert "1 request waits for you" in main_text(await scene.browser.get("/console/agents"))


async def test_a_revoked_key_gets_nothing_approved(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    [claude] = [key for key in (await scene.ada.get("/api/keys")).json()["data"] if key["name"] == "Claude"]
    await scene.ada.delete(f"/api/keys/{claude['id']}")
    path = f"/console/agents/requests/{waiting['request_id']}"

    page = await scene.browser.get(path)

    assert "This agent is no longer connected" in page.text
    assert (await scene.post(path, do="approve", seen=hidden_field(page, "seen"))).status_code == 409
    assert await count(service, "events") == 0


async def test_a_request_ends_after_24_hours_and_can_be_made_again(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    path = f"/console/agents/requests/{waiting['request_id']}"
    seen = hidden_field(await scene.browser.get(path), "seen")
    await service.run_sql("update agent_requests set expires_at = now()")

    assert (await scene.browser.get(path)).status_code == 404
    assert (await scene.post(path, do="approve", seen=seen)).status_code == 409
    again = problem_of(await agent.call("create_event", **NIGHT))
    assert again["request_id"] != waiting["request_id"]
    assert await count(service, "events") == 0


async def test_no_more_than_fifty_requests_of_a_key_wait(service: Service) -> None:
    _, agent = await open_asking_scene(service)

    answers = await asyncio.gather(
        *(agent.call("create_event", **event_fields(title=f"Night {number}")) for number in range(60))
    )

    statuses = [problem_of(answer)["status"] for answer in answers]
    assert (statuses.count("waiting"), statuses.count("not_stored")) == (MAX_WAITING_REQUESTS, 10)
    assert await count(service, "agent_requests") == MAX_WAITING_REQUESTS


async def test_an_approved_call_without_a_key_is_answered_once_and_then_asks_again(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    await decide(scene, f"/console/agents/requests/{waiting['request_id']}", "approve")
    await agent.call("create_event", **NIGHT)

    again = problem_of(await agent.call("create_event", **NIGHT))

    assert again["code"] == "approval_required"
    assert await count(service, "events") == 1


async def test_all_pages_of_the_console_say_how_many_requests_wait(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    await agent.call("create_event", **NIGHT)
    await agent.call("create_event", **event_fields(title="Late night"))
    await service.database.transact(lambda tx: sessions.announce_change(tx, scene.ada.id))

    page = await scene.browser.get("/console/queues")

    assert re.search('Agents <span class="badge">2</span><span class="unseen"> waiting for you</span>', page.text)


async def test_reading_needs_no_approval_nor_do_other_keys(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    await scene.ada.create_event()

    listed = await agent.call("list_events")

    assert len(listed["structuredContent"]["data"]) == 1


async def test_requests_to_another_organizer_can_be_neither_seen_nor_approved(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    await service.run_sql("update agent_requests set tenant_id = %(bob)s", bob=scene.bob.id)
    path = f"/console/agents/requests/{waiting['request_id']}"

    assert (await scene.browser.get(path)).status_code == 404
    assert (await scene.post(path, do="approve", seen="")).status_code == 409
    assert (await scene.post(path, do="decline", seen="")).status_code == 409


async def test_a_form_of_another_site_approves_no_request(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    path = f"/console/agents/requests/{waiting['request_id']}"
    seen = hidden_field(await scene.browser.get(path), "seen")

    assert (await scene.foreign(path, do="approve", seen=seen)).status_code == 403
    assert await count(service, "events") == 0


async def test_the_switch_is_beside_the_daily_limit(service: Service) -> None:
    scene = await open_organizer_scene(service)
    [key] = (await scene.ada.get("/api/keys")).json()["data"]
    path = f"/console/agents/limit?key={key['id']}"
    assert "The agent must ask before each change" in main_text(await scene.browser.get(path))

    await scene.post(path, daily_limit="", asks_first="yes")

    refusal = await scene.ada.post("/api/events", {"event": event_fields()})
    assert refusal.json()["code"] == "approval_required"
    assert "This agent must ask you before each change." in main_text(await scene.browser.get("/console/agents"))
    await scene.post(path, daily_limit="")
    assert (await scene.ada.post("/api/events", {"event": event_fields()})).status_code == 201


async def test_only_calls_of_visitors_and_uploads_do_not_wait_for_a_person() -> None:
    at_once = {
        operation.name
        for operation in TABLE
        if not operation.mode.reads and not operation.public and operation.name not in STORED_OPERATIONS
    }

    webhooks = {operation.name for operation in TABLE if operation.group == "webhooks"}
    assert at_once - webhooks == {"presign_upload", "join_queue", "get_queue_status", "verify_queue_token"}


async def test_an_agent_that_asks_first_may_not_change_webhooks(service: Service) -> None:
    scene, agent = await open_asking_scene(service)
    made = await scene.ada.post("/api/webhook_endpoints", {"webhook_endpoint": {"url": "https://shop.example/"}})
    asking = Client(service.http, agent.key)
    path = f"/api/webhook_endpoints/{made.json()['data']['id']}"

    answers = [
        await asking.post("/api/webhook_endpoints", {"webhook_endpoint": {"url": "https://shop.example/"}}),
        await asking.patch(path, {"webhook_endpoint": {"url": "https://shop.example/"}}),
        await asking.post(f"{path}/rotate_secret"),
        await asking.post(f"{path}/ping"),
        await asking.post(f"{path}/resend", {"since": "2026-01-01T00:00:00Z"}),
        await asking.delete(path),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "forbidden")] * 6
    assert (await asking.get("/api/webhook_endpoints")).status_code == 200


@pytest.mark.parametrize("text", ["x", "0", "99999999999999999999"])
async def test_a_page_of_a_request_with_an_invalid_id_is_not_found(service: Service, text: str) -> None:
    scene = await open_organizer_scene(service)

    assert (await scene.browser.get(f"/console/agents/requests/{text}")).status_code == 404


@pytest.mark.parametrize("command", ['{"capacity": "many"}', '{"event_id": 1', "[]"])
async def test_a_request_of_another_version_that_cannot_be_read_is_left_out(service: Service, command: str) -> None:
    scene, agent = await open_asking_scene(service)
    waiting = problem_of(await agent.call("create_event", **NIGHT))
    stored = service.database.resources.secret.seal(f'{{"command": {command}, "key": null, "program": ""}}')
    await service.run_sql("update agent_requests set sealed = %(sealed)s", sealed=stored)

    page = await scene.browser.get(f"/console/agents/requests/{waiting['request_id']}")
    listed = await scene.browser.get("/console/agents")

    assert (page.status_code, listed.status_code) == (404, 200)
