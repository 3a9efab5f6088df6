"""The socket of a service belongs to its process alone, and takes many connections at once."""

import asyncio
import contextlib
import socket
from typing import cast

import uvloop

from holdfast.kit.http.sockets import BACKLOG, copies_of_socket, listen


def test_a_subprocess_does_not_keep_the_port_of_its_service() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert not listener.get_inheritable()


def test_a_crowd_of_connections_is_accepted_in_few_turns_of_the_event_loop() -> None:
    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(cast(asyncio.Transport, transport))

    async def turns() -> int:
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(Accepted, sock=copy, backlog=BACKLOG) for copy in copies_of_socket(listener)
        ]
        with contextlib.ExitStack() as stack:
            for _ in range(160):
                stack.enter_context(socket.create_connection(listener.getsockname()))
            count = 0
            while len(accepted) < 160:
                await asyncio.sleep(0)
                count += 1
            for transport in accepted:
                transport.close()
        for server in servers:
            server.close()
        return count

    accepted: list[asyncio.Transport] = []
    listener = listen("127.0.0.1", 0)
    assert uvloop.run(turns()) < 20
