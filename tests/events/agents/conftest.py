"""Fixtures of the endpoint for agents."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.databases import State, can_empty, clone, state_of
from tests.events.agents.documents import ISSUER
from tests.events.agents.samples import PHOTOS, furnish_organizer
from tests.events.refusal_scene import PROCESSOR_KEY
from tests.helpers.photos import write_photos
from tests.support import Client, Service, make_new, restore, running, unlimited


@pytest.fixture
def settings(settings: Settings, processor_url: str) -> Settings:
    """With a payment processor, so that every tool can be called."""
    return with_processor(settings, processor_url)


@pytest.fixture(scope="module")
async def module_service(
    template_url: str, processor_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    """The service of the tests of a module, with the same payment processor."""
    with clone(template_url) as url:
        async with running(with_processor(unlimited(url, tmp_path_factory.mktemp("data")), processor_url)) as service:
            yield service


def with_processor(settings: Settings, processor_url: str) -> Settings:
    return settings.model_copy(update={"stripe_key": PROCESSOR_KEY, "stripe_api": processor_url})


@pytest.fixture
def http(service: Service) -> httpx2.AsyncClient:
    """The service as everybody sees it."""
    return service.http


@pytest.fixture(scope="module")
async def furnished(module_service: Service, template_url: str) -> tuple[Client, State]:
    """The organizer for whom the sample arguments are accepted, and what the database then holds."""
    await make_new(module_service, template_url)
    return await furnish_organizer(module_service), state_of(module_service.database.url)


@pytest.fixture
async def restored_ada(furnished: tuple[Client, State], emptied_service: Service) -> Client:
    """The same organizer, as if she were new."""
    ada, state = furnished
    await restore(emptied_service, state)
    await write_photos(emptied_service, *PHOTOS)
    return ada


@pytest.fixture
async def own_ada(service: Service) -> Client:
    """An organizer of the test's own."""
    return await furnish_organizer(service)


@pytest.fixture
def ada(request: pytest.FixtureRequest, template_url: str) -> Client:
    """The organizer for whom the sample arguments are accepted, in the service of the test."""
    names = {"own_service", "settings", "database_url"}
    is_shared = names.isdisjoint(request.fixturenames) and can_empty(template_url)
    return request.getfixturevalue("restored_ada" if is_shared else "own_ada")


@pytest.fixture
async def beside_issuer(settings: Settings) -> AsyncIterator[Service]:
    """The service where an authorization server is configured."""
    async with running(settings.model_copy(update={"oauth_issuer": ISSUER})) as service:
        yield service
