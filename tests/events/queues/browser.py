"""A browser that looks at the waiting-room page, and what the page says to it."""

import re

import httpx2

from tests.events.queues.queue_scene import QueueScene


class RoomBrowser:
    """A visitor who looks at a page and keeps its cookies."""

    def __init__(self, queue: QueueScene, path: str | None = None) -> None:
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(queue.service.app), base_url="http://events.test")
        self.path = path or f"/queues/{queue.id}"

    async def look(self, method: str = "GET") -> httpx2.Response:
        return await self.http.request(method, self.path)

    async def state(self) -> str:
        return room_state(await self.look())

    async def line_up(self) -> httpx2.Response:
        """Come, and look again once there is a cookie."""
        assert await self.state() == "arriving"
        return await self.look()

    @property
    def cookie(self) -> tuple[str, str]:
        [(name, value)] = dict(self.http.cookies).items()
        return name, value


def room_state(page: httpx2.Response) -> str:
    match = re.search(r'<main[^>]* data-state="(\w+)"', page.text)
    assert match, page.text
    return match[1]


def room_position(page: httpx2.Response) -> int:
    match = re.search(r'id="position"[^>]*>([\d,]+)<', page.text)
    assert match, page.text
    return int(match[1].replace(",", ""))
