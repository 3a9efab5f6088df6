"""Fixtures of the tests of the authorization server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene, prepare_scene
from tests.helpers.databases import shared_or_own
from tests.helpers.events_service import Service, running_events


@pytest.fixture(scope="module")
def module_settings() -> dict[str, Any]:
    return {"oauth_builtin": True}


@pytest.fixture
def with_server(settings: Settings, module_settings: dict[str, Any]) -> Settings:
    return settings.model_copy(update=module_settings)


@pytest.fixture
async def own_server(with_server: Settings) -> AsyncIterator[Service]:
    async with running_events(with_server) as service:
        yield service


@pytest.fixture
def server(request: pytest.FixtureRequest, template_url: str) -> Service:
    """The service as its own authorization server: that of the module, unless a test names its own, or settings."""
    return shared_or_own(
        request, template_url, "settings", "own_server", shared="emptied_service", unshared="own_server"
    )


@pytest.fixture
async def scene(server: Service) -> OAuthServerScene:
    return await prepare_scene(server)
