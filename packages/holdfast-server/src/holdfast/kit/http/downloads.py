"""Files that are sent while they are generated, of any length and with only a part in memory."""

import asyncio
from collections.abc import AsyncIterator

from holdfast.kit.http.handler import NO_STORE, NOSNIFF, Header, Reply, Request


class Download(Reply, kw_only=True):
    """A file as the answer to a request.

    If it cannot be generated to its end, the connection is closed, so that no client takes a part for the file.

    filename    ASCII letters, digits, dots and dashes
    parts       consumed one by one, as fast as the client reads, until it disconnects
    """

    filename: str
    parts: AsyncIterator[bytes]

    async def send(self, request: Request) -> None:
        disposition: Header = (b"content-disposition", f'attachment; filename="{self.filename}"'.encode())
        headers = [NOSNIFF, NO_STORE, *self.headers, (b"content-type", self.media_type), disposition]
        await request.send({"type": "http.response.start", "status": self.status, "headers": headers})
        if request.method != "HEAD":
            gone = asyncio.create_task(_wait_for_disconnect(request))
            try:
                async for part in self.parts:
                    if gone.done():
                        return
                    await request.send({"type": "http.response.body", "body": part, "more_body": True})
            finally:
                gone.cancel()
        await request.send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
