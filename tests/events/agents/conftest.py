"""Fixtures of the endpoint for agents."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.agents.documents import ISSUER
from tests.events.agents.samples import PHOTOS, prepare_organizer
from tests.events.refusal_scene import PROCESSOR_KEY
from tests.helpers.databases import State, shared_or_own, state_of
from tests.helpers.events_service import Client, Service, empty_service, restore_service, running_events
from tests.helpers.photos import write_photos


@pytest.fixture(scope="module")
def module_settings(processor_url: str) -> dict[str, Any]:
    """With a payment processor, so that every tool can be called."""
    return {"stripe_key": PROCESSOR_KEY, "stripe_api": processor_url}


@pytest.fixture
def settings(settings: Settings, module_settings: dict[str, Any]) -> Settings:
    """With the same payment processor."""
    return settings.model_copy(update=module_settings)


@pytest.fixture
def http(service: Service) -> httpx2.AsyncClient:
    """The service as everybody sees it."""
    return service.http


@pytest.fixture(scope="module")
async def prepared_organizer(module_service: Service, template_url: str) -> tuple[Client, State]:
    """The organizer for whom the sample arguments are accepted, and what the database then holds."""
    await empty_service(module_service, template_url)
    return await prepare_organizer(module_service), state_of(module_service.database.url)


@pytest.fixture
async def restored_ada(prepared_organizer: tuple[Client, State], emptied_service: Service) -> Client:
    """The same organizer, as if she were new."""
    ada, state = prepared_organizer
    await restore_service(emptied_service, state)
    await write_photos(emptied_service, *PHOTOS)
    return ada


@pytest.fixture
async def own_ada(service: Service) -> Client:
    """An organizer of the test's own."""
    return await prepare_organizer(service)


@pytest.fixture
def ada(request: pytest.FixtureRequest, template_url: str) -> Client:
    """The organizer for whom the sample arguments are accepted, in the service of the test."""
    names = ("own_service", "settings", "database_url")
    return shared_or_own(request, template_url, *names, shared="restored_ada", unshared="own_ada")


@pytest.fixture
async def beside_issuer(settings: Settings) -> AsyncIterator[Service]:
    """The service where an authorization server is configured."""
    async with running_events(settings.model_copy(update={"oauth_issuer": ISSUER})) as service:
        yield service
