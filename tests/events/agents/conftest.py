"""Fixtures of the endpoint for agents."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.databases import clone
from tests.events.agents.documents import ISSUER
from tests.events.agents.samples import furnish_organizer
from tests.events.scene import PROCESSOR_KEY
from tests.support import Client, Service, running, unlimited


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


@pytest.fixture
async def ada(service: Service) -> Client:
    """The organizer for whom the sample arguments are accepted."""
    return await furnish_organizer(service)


@pytest.fixture
async def beside_issuer(settings: Settings) -> AsyncIterator[Service]:
    """The service where an authorization server is configured."""
    async with running(settings.model_copy(update={"oauth_issuer": ISSUER})) as service:
        yield service
