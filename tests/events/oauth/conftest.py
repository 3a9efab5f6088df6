"""Fixtures of the tests of access tokens."""

from collections.abc import AsyncIterator

import pytest

from tests.events.oauth.authorization_server import AuthorizationServer, authorization_server


@pytest.fixture
async def server() -> AsyncIterator[AuthorizationServer]:
    """An authorization server with one key."""
    async with authorization_server() as server:
        yield server
