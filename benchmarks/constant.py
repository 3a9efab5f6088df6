"""The floor of what is served from memory: an ASGI application that answers a number of bytes, always the same.

python -m benchmarks.constant BYTES
"""

import socket
import sys
from typing import Any

import uvicorn

BODY = b"x" * int(sys.argv[1])
HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-length", str(len(BODY)).encode()),
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"accept-encoding"),
    (b"etag", b'"1-1"'),
]


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": BODY})


if __name__ == "__main__":
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")).run([listener])
