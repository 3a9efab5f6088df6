"""An event with a waiting room before it, and a browser that goes through both."""

import re
from dataclasses import dataclass
from html import unescape
from typing import Any

import httpx2

from holdfast.kit.http.application import Application
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.event_visitor import field_value, page_text
from tests.helpers.events_service import Client, Service


@dataclass
class GuardedEvent:
    """An event, and the waiting room before it, which releases one visitor a second."""

    queue: QueueScene
    id: int
    path: str

    @property
    def service(self) -> Service:
        return self.queue.service

    @property
    def ada(self) -> Client:
        return self.queue.ada

    async def event(self) -> dict[str, Any]:
        return (await self.ada.get(f"/api/events/{self.id}")).json()["data"]

    async def registered_addresses(self) -> set[str]:
        """The addresses of all who have registered, settled or not."""
        rows = await self.service.run_sql(
            "select email from registrations join users on users.id = user_id where event_id = %(id)s", id=self.id
        )
        return {email for (email,) in rows}


async def guard(service: Service, ada: Client | None = None, **fields: Any) -> GuardedEvent:
    """A new event with a waiting room. `fields` are those of the event."""
    ada = ada or await service.organizer()
    event = await ada.create_event(**fields)
    queue = await open_queue(service, ada, target_url=None, event_id=event["id"])
    return GuardedEvent(queue, event["id"], event["public_url"].removeprefix("http://events.test"))


class GuestBrowser:
    """A browser with cookies that looks at the event, waits, and registers people.

    framed    whether it looks at the frames of both
    app       the process that it asks; by default that of the scene
    """

    def __init__(
        self, guarded: GuardedEvent, *, framed: bool = False, language: str = "en", app: Application | None = None
    ) -> None:
        self.guarded = guarded
        self.framed = framed
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app or guarded.service.app),
            base_url="http://events.test",
            headers={"Accept": "text/html", "Accept-Language": language},
        )
        end = "/embed" if framed else ""
        self.event_path = f"/events/{guarded.id}/embed" if framed else guarded.path
        self.room_path = f"/queues/{guarded.queue.id}{end}"
        self.form_path = f"/events/{guarded.id}{end or '/registrations'}"
        self.released_path = f"/events/{guarded.id}{end}/released"

    async def look(self, path: str | None = None) -> httpx2.Response:
        """The page of the event, or another one."""
        return await self.http.get(path or self.event_path)

    async def line_up(self) -> httpx2.Response:
        """Go to the waiting room, as the page of the event says, and wait there."""
        page = await self.look()
        link = re.search(r'<a class="button" id="to_waiting_room" href="([^"]*)">', page.text)
        assert link, page.text
        assert unescape(link[1]) == self.room_path
        await self.look(self.room_path)
        return await self.look(self.room_path)

    async def enter(self) -> httpx2.Response:
        """Follow the waiting room at one's turn: the page with the form."""
        answer = await self.look(self.room_path)
        for _ in range(2):
            assert answer.status_code == 303, answer.text
            answer = await self.look(answer.headers["location"])
        return answer

    async def go_in(self) -> httpx2.Response:
        """Line up, wait for the release, and enter."""
        await self.line_up()
        await self.guarded.queue.tick()
        return await self.enter()

    async def send(self, page: httpx2.Response, email: str, **fields: str) -> httpx2.Response:
        """Fill in the form on a page, and send it."""
        fields = {"token": field_value(page, "token"), "email": email, **fields}
        return await self.http.post(self.form_path, data=fields)


__all__ = ["GuardedEvent", "GuestBrowser", "guard", "page_text"]
