"""Fixtures of the tests of the authorization server."""

from collections.abc import AsyncIterator

import pytest

from holdfast.events.settings import Settings
from tests.accounts.oauth.scene import Scene, furnished


@pytest.fixture
def with_server(settings: Settings) -> Settings:
    return settings.model_copy(update={"oauth_builtin": True})


@pytest.fixture
async def scene(with_server: Settings) -> AsyncIterator[Scene]:
    async with furnished(with_server) as scene:
        yield scene
