"""Fixtures of the tests of access tokens."""

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.events.oauth import issuer as module
from holdfast.events.oauth.issuer import Issuer
from holdfast.events.settings import Settings
from tests.events.oauth.authorization_server import AUDIENCE, AuthorizationServer, authorization_server
from tests.events.oauth.oauth_scene import OAuthScene, open_oauth_scene


@pytest.fixture(autouse=True)
def long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, a server that answers is not too late, and is not asked again before it should."""
    monkeypatch.setattr(module, "READ_TIMEOUT_SECONDS", 60.0)
    monkeypatch.setattr(module, "NEW_KEY_TIMEOUT_SECONDS", 60.0)
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 3600.0)


@pytest.fixture
async def server() -> AsyncIterator[AuthorizationServer]:
    """An authorization server with one key."""
    async with authorization_server() as server:
        yield server


@pytest.fixture
def issuer(server: AuthorizationServer) -> Iterator[Issuer]:
    issuer = Issuer(server.issuer, AUDIENCE)
    yield issuer
    issuer.close()


@pytest.fixture
def with_issuer(settings: Settings, server: AuthorizationServer) -> Settings:
    return settings.model_copy(update={"oauth_issuer": server.issuer})


@pytest.fixture
async def scene(with_issuer: Settings, server: AuthorizationServer) -> AsyncIterator[OAuthScene]:
    async with open_oauth_scene(with_issuer, server) as scene:
        yield scene


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered, and the server may be asked at any time."""
    monkeypatch.setattr(module, "KEYS_TTL_SECONDS", -1.0)
    monkeypatch.setattr(module, "MIN_READ_INTERVAL_SECONDS", 0.0)
