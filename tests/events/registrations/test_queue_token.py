"""The organizer's own calls need no release; a release that they pass on is checked, and used up."""

import asyncio
import json
from typing import Any

import httpx2

from tests.events.agents.samples import agent
from tests.events.queues.guarded import GuardedEvent, guard
from tests.helpers.events_service import Service


async def register(guarded: GuardedEvent, email: str, token: str | None = None) -> httpx2.Response:
    fields: dict[str, Any] = {"event_id": guarded.id, "email": email}
    if token is not None:
        fields["queue_token"] = token
    return await guarded.ada.post("/api/registrations", {"registration": fields})


async def release_token(guarded: GuardedEvent, visitor_id: str) -> str:
    await guarded.queue.join(visitor_id)
    await guarded.queue.tick()
    return await guarded.queue.token(visitor_id)


async def test_the_organizer_registers_people_without_a_release(service: Service) -> None:
    guarded = await guard(service)

    assert (await register(guarded, "ann@example.com")).status_code == 202
    assert await guarded.registered_addresses() == {"ann@example.com"}


async def test_a_release_that_is_passed_on_registers_one_person(service: Service) -> None:
    guarded = await guard(service)
    token = await release_token(guarded, "ann")

    assert (await register(guarded, "ann@example.com", token)).status_code == 202
    refusal = await register(guarded, "ben@example.com", token)

    assert refusal.status_code == 403
    body = refusal.json()
    assert (body["code"], body["waiting_room_url"]) == (
        "queue_required",
        f"http://events.test/queues/{guarded.queue.id}",
    )
    assert (await guarded.queue.verify(token)).json()["reason"] == "used"
    assert (await register(guarded, "ann@example.com", token)).status_code == 202, "it changes nothing"
    assert await guarded.registered_addresses() == {"ann@example.com"}


async def test_a_token_of_another_room_is_refused(service: Service) -> None:
    guarded = await guard(service)
    other = await guard(service, guarded.ada)
    stranger = await guard(service, await service.organizer("Ben Events"))

    for token in ("", "token", await release_token(other, "ann"), await release_token(stranger, "ann")):
        answer = await register(guarded, "eve@example.com", token)
        assert (answer.status_code, answer.json()["code"]) == (403, "queue_required"), token
    assert await guarded.registered_addresses() == set()


async def test_calls_at_once_with_one_release_register_one_person(service: Service) -> None:
    guarded = await guard(service)
    token = await release_token(guarded, "ann")

    answers = await asyncio.gather(*(register(guarded, f"guest{n}@example.com", token) for n in range(20)))

    assert sorted(answer.status_code for answer in answers) == [202, *[403] * 19]


async def test_a_token_for_an_event_without_a_room_is_ignored(service: Service) -> None:
    guarded = await guard(service)
    token = await release_token(guarded, "ann")
    await guarded.ada.delete(guarded.queue.path)

    assert (await register(guarded, "ann@example.com", token)).status_code == 202


async def test_agents_read_the_address_of_the_waiting_room(service: Service) -> None:
    guarded = await guard(service)

    answer = await agent(service, guarded.ada).call(
        "create_registration", event_id=guarded.id, email="ann@example.com", queue_token="none"
    )

    assert answer["isError"] is True
    body = json.loads(answer["content"][0]["text"])
    assert (body["code"], body["waiting_room_url"]) == (
        "queue_required",
        f"http://events.test/queues/{guarded.queue.id}",
    )
