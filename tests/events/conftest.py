"""Fixtures of the tests of the events service."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from holdfast.events.settings import Settings
from tests.events.refusal_scene import PROCESSOR_KEY, RefusalScene
from tests.helpers.databases import clone, scratch_database, shared_or_own
from tests.helpers.events_service import Service, empty_service, running_events, unlimited

if TYPE_CHECKING:  # its library takes long to load
    from tests.helpers.payments import PaymentScene, SharedProcessor


@pytest.fixture
def service(new_service: Service) -> Service:
    """The service of a test."""
    return new_service


@pytest.fixture(scope="session")
def processor_url() -> Iterator[str]:
    """The address of a payment processor, for tests of something else; `tests/events/payments` has its own."""
    program = [sys.executable, "-m", "holdfast_demo.stripe", "--port", "0", "--key", PROCESSOR_KEY]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


@pytest.fixture(scope="module")
async def shared_processor(
    template_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator["SharedProcessor"]:
    """A service with a payment processor, for the tests of a module."""
    from tests.helpers.payments import open_shared_processor

    with clone(template_url) as url:
        async with open_shared_processor(unlimited(url, tmp_path_factory.mktemp("data"))) as shared:
            yield shared


@pytest.fixture
def processor_source(request: pytest.FixtureRequest, template_url: str) -> "Settings | SharedProcessor":
    """What a payment scene is opened from: settings if the test names them or a service, else what a module shares."""
    names = ("own_service", "settings", "database_url", "service")
    return shared_or_own(request, template_url, *names, shared="shared_processor", unshared="settings")


@pytest.fixture
async def payment_scene(
    processor_source: "Settings | SharedProcessor", template_url: str
) -> AsyncIterator["PaymentScene"]:
    """A service with a payment processor whose books are in order afterwards."""
    from tests.helpers.payments import open_payment_scene

    if isinstance(processor_source, Settings):
        scenes = open_payment_scene(processor_source)
    else:
        await empty_service(processor_source.service, template_url)
        scenes = processor_source.open_scene()
    async with scenes as scene:
        yield scene
        scene.processor.check()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RefusalScene]:
    """One scene for all the tests that share it; fails at their end if what was refused has changed something."""
    with scratch_database(template_url, "bad_input") as url:
        async with running_events(unlimited(url, tmp_path_factory.mktemp("data"))) as service:
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
            endpoint = {"webhook_endpoint": {"url": "https://shop.example/hooks"}}
            ids["endpoint_id"] = (await ada.post("/api/webhook_endpoints", endpoint)).json()["data"]["id"]
            ids["message_id"] = "msg_1"
            scene = RefusalScene(service, ada, spec, ids)
            yield scene
            await scene.is_untouched()
