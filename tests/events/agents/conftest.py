"""Fixtures of the door for agents."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from holdfast.events.payments.demo.processor import KEY
from holdfast.events.settings import Settings
from tests.events.agents.documents import ISSUER
from tests.events.agents.samples import furnished
from tests.support import Client, Service, running


@pytest.fixture
def settings(settings: Settings, processor_url: str) -> Settings:
    """With a payment processor, so that every tool can be called."""
    return settings.model_copy(update={"stripe_key": KEY, "stripe_api": processor_url})


@pytest.fixture
def http(service: Service) -> httpx2.AsyncClient:
    """The service as everybody sees it."""
    return service.http


@pytest.fixture
async def ada(service: Service) -> Client:
    """The organizer for whom the sample arguments are accepted."""
    return await furnished(service)


@pytest.fixture
async def beside_issuer(settings: Settings) -> AsyncIterator[Service]:
    """The service where an authorization server is configured."""
    async with running(settings.model_copy(update={"oauth_issuer": ISSUER})) as service:
        yield service
