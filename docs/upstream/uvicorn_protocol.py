import asyncio

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Transport(asyncio.Transport):
    def __init__(self):
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 80)})
        self.writes = []

    def write(self, data):
        self.writes.append(data)

    def is_closing(self):
        return False

    def close(self): ...


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def main():
    config = uvicorn.Config(app, http="httptools", lifespan="off", access_log=False)
    config.load()
    protocol = HttpToolsProtocol(config, uvicorn.server.ServerState(), {})
    transport = Transport()
    protocol.connection_made(transport)
    protocol.data_received(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    await asyncio.sleep(0.1)
    print("writes:", len(transport.writes))


asyncio.run(main())
