"""Fixtures of the tests of the events service."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.events.scene import Scene
from tests.support import running, scratch_database, unlimited


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """One scene for all the tests that share it: what is refused changes nothing."""
    with scratch_database(template_url, "bad_input") as url:
        async with running(unlimited(url, tmp_path_factory.mktemp("data"))) as service:
            ada = await service.organizer()
            event = await ada.create_event()
            poll = await ada.register(event["id"], email="ann@example.com")
            await service.settle()
            key = (await ada.post("/api/keys", {"api_key": {"name": "One more"}})).json()["data"]
            queue = await ada.create_queue()
            await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": "ann"})
            spec = (await service.http.get("/openapi.json")).json()
            ids = {"id": key["id"], "event_id": event["id"], "user_id": poll.rpartition("/")[2]}
            ids |= {"queue_id": queue["id"], "visitor_id": "ann"}
            yield Scene(service, ada, spec, ids)
