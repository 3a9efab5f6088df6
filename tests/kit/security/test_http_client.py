"""A server that resets connections is unreachable, however early it does so."""

import asyncio
import socket
import struct
import threading
from collections.abc import Generator

import httpx2
import pytest

from holdfast.kit.security.http_client import HttpClient

CLIENTS, REQUESTS = 20, 60


@pytest.fixture
def resetting_url() -> Generator[str]:
    """The address of a server that resets each connection as soon as it is open."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        threading.Thread(target=reset_all, args=[listening], daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        listening.shutdown(socket.SHUT_RDWR)


def reset_all(listening: socket.socket) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def test_every_connection_that_a_server_resets_is_a_failure_of_the_connection(resetting_url: str) -> None:
    async def ask() -> None:
        async with HttpClient(trust_env=False, verify=False) as http:
            for _ in range(REQUESTS):
                with pytest.raises(httpx2.TransportError):
                    await http.get(resetting_url)

    await asyncio.gather(*(ask() for _ in range(CLIENTS)))


async def test_an_error_that_is_no_reset_is_raised_unchanged() -> None:
    async def fail(request: httpx2.Request) -> httpx2.Response:
        raise AttributeError("another one", name="other")

    async with HttpClient(transport=httpx2.MockTransport(fail)) as http:
        with pytest.raises(AttributeError, match="another one"):
            await http.get("http://host.example/")
