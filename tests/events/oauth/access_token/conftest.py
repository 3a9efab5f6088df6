"""Fixtures of the tests of single tokens, which share one authorization server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.events.oauth.authorization_server import AuthorizationServer, authorization_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_server() -> AsyncIterator[AuthorizationServer]:
    async with authorization_server() as server:
        yield server


@pytest.fixture
def server(shared_server: AuthorizationServer) -> AuthorizationServer:
    """The same for all tests here, since starting and stopping one takes longer than most of them."""
    shared_server.begin_anew()
    return shared_server
