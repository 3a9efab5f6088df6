"""Quotas of an organizer: what the service stores for it is bounded, and the refusal names the limit."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.agents.samples import agent
from tests.events.photos.site import site_of
from tests.helpers.agents import problem_of
from tests.helpers.events_service import Client, Service, event_fields, queue_fields, running_events
from tests.helpers.photos import add_photos, key_of
from tests.helpers.pictures import picture

UPLOAD: dict[str, Any] = {"content_type": "image/png", "content_length": 1000}


@pytest.fixture
async def service(settings: Settings) -> AsyncIterator[Service]:
    """The service with room for two of each, and for 1,000 bytes of text."""
    changed = {
        "events_per_organizer": 2,
        "queues_per_organizer": 2,
        "photos_per_organizer": 2,
        "text_per_organizer": 1_000,
    }
    async with running_events(settings.model_copy(update=changed)) as service:
        yield service


def quota(response: httpx2.Response) -> tuple[str, int]:
    """The quota that a refusal names, and its limit."""
    body = response.json()
    assert (response.status_code, body["code"]) == (422, "quota_exceeded")
    assert body["error"] == f"An organizer may have at most {body['limit']:,} {body['quota']}."
    return body["quota"], body["limit"]


async def new_event(client: Client, **fields: Any) -> httpx2.Response:
    return await client.post("/api/events", {"event": event_fields(**fields)})


async def new_queue(client: Client) -> httpx2.Response:
    return await client.post("/api/queues", {"queue_event": queue_fields()})


async def test_an_organizer_can_have_a_limited_number_of_open_events(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    first, second = await ada.create_event(), await ada.create_event()

    assert quota(await new_event(ada)) == ("events that are neither cancelled nor over", 2)
    assert (await new_event(ben)).status_code == 201
    await ada.delete(f"/api/events/{first['id']}")
    assert (await new_event(ada)).status_code == 201
    await service.run_sql("update events set datetime = now() where id = %(id)s", id=second["id"])
    assert (await new_event(ada)).status_code == 201
    quota(await new_event(ada))


async def test_an_agent_gets_the_same_refusal_for_too_many_events(service: Service) -> None:
    ada = await service.organizer()
    tool = agent(service, ada)
    for _ in range(2):
        assert not (await tool.call("create_event", **event_fields()))["isError"]

    refusal = problem_of(await tool.call("create_event", **event_fields()))

    assert (refusal["code"], refusal["limit"], refusal["retryable"]) == ("quota_exceeded", 2, False)


async def test_an_admin_cannot_exceed_the_quota_of_events_for_an_organizer(service: Service) -> None:
    ada, admin = await service.organizer(), await service.admin()

    made = [(await new_event(admin, organizer_id=ada.id)).status_code for _ in range(3)]

    assert made == [201, 201, 422]


async def test_concurrent_requests_do_not_exceed_a_quota(service: Service) -> None:
    ada = await service.organizer()

    events = await asyncio.gather(*(new_event(ada) for _ in range(8)))
    queues = await asyncio.gather(*(new_queue(ada) for _ in range(8)))

    for made in (events, queues):
        assert sorted(response.status_code for response in made) == [201] * 2 + [422] * 6


async def test_the_texts_of_all_events_of_an_organizer_are_limited_in_bytes(service: Service) -> None:
    """Those of cancelled events too: else creating and cancelling would go on for ever."""
    ada = await service.organizer()
    event = await ada.create_event(body="é" * 600)
    await ada.delete(f"/api/events/{event['id']}")

    assert quota(await new_event(ada)) == ("bytes of text in all its events", 1_000)


async def test_a_text_cannot_grow_when_there_is_no_room_but_it_can_shrink(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event(body="x" * 1_200)
    path = f"/api/events/{event['id']}"

    assert quota(await ada.patch(path, {"event": {"body": "x" * 1_300}}))[1] == 1_000
    assert (await ada.patch(path, {"event": {"capacity": 20}})).status_code == 200
    assert (await ada.patch(path, {"event": {"body": "Short."}})).status_code == 200
    assert (await ada.patch(path, {"event": {"body": "A little longer."}})).status_code == 200


async def test_an_organizer_can_have_a_limited_number_of_queues(service: Service) -> None:
    ada = await service.organizer()
    first = await ada.create_queue()
    await ada.create_queue()

    assert quota(await new_queue(ada)) == ("queues", 2)
    await ada.delete(f"/api/queues/{first['id']}")
    assert (await new_queue(ada)).status_code == 201


async def test_an_organizer_can_have_a_limited_number_of_photos_and_uploads(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await service.run_sql(
        """
        insert into photos (key, organizer_id, state, content_type, content_length)
        select key, %(id)s, 'accepted', 'image/png', 1 from unnest(%(keys)s::text[]) as key
        """,
        id=ada.id,
        keys=[key_of(ada.id, "a"), key_of(ada.id, "b")],
    )

    assert quota(await ada.post("/api/uploads/presign", UPLOAD)) == ("photos", 2)
    async with site_of(service) as site:
        assert quota(await add_photos(ada, event, url=site.publish("/a.jpg", picture()))) == ("photos", 2)
