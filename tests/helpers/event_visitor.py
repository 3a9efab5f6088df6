"""A person at a browser who fills in the registration form of an event."""

import re
import secrets
from html import unescape
from typing import Any

import httpx2

from tests.helpers.events_service import Service


class Visitor:
    """A browser without cookies. It fills in what it is shown, as people do.

    framed    whether the form is in a frame of another site
    secret    what the script of the page adds to the form
    """

    def __init__(
        self,
        service: Service,
        *,
        framed: bool = True,
        address: str = "127.0.0.1",
        language: str = "en",
        scripts: bool = True,
    ) -> None:
        self.http = service.client_at(address, Accept="text/html", Accept_Language=language)
        self.framed = framed
        self.secret = secrets.token_hex(16) if scripts else None

    async def open(self, event_id: int) -> httpx2.Response:
        """The page with the form."""
        return await self.http.get(f"/events/{event_id}/embed")

    async def send(self, event_id: int, **fields: str) -> httpx2.Response:
        """Open the form, fill it in, and send it."""
        token = field_value(await self.open(event_id), "token")
        return await self.post(event_id, **{"token": token, **fields})

    async def post(self, event_id: int, content: Any = None, **fields: str) -> httpx2.Response:
        """Send a form that was not shown to this visitor."""
        path = f"/events/{event_id}/{'embed' if self.framed else 'registrations'}"
        if content is not None:
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            return await self.http.post(path, content=content, headers=kind)
        if self.secret:
            fields = {"form_secret": self.secret, **fields}
        return await self.http.post(path, data=fields)

    async def register(self, event_id: int, email: str, **fields: str) -> str:
        """Send the form, and return the path of the outcome."""
        answer = await self.send(event_id, email=email, **fields)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]


def page_state(page: httpx2.Response) -> str:
    """The state that a page shows: that of its form, or else its own."""
    match = re.search(r'id="form_part"[^>]* data-state="(\w+)"', page.text) or re.search(
        r'<main[^>]* data-state="(\w+)"', page.text
    )
    assert match, page.text
    return match[1]


def field_value(page: httpx2.Response, field: str) -> str:
    """The value of a field of the form in a page."""
    match = re.search(rf'<input[^>]* name="{field}"[^>]* value="([^"]*)"', page.text)
    assert match, page.text
    return unescape(match[1])


def page_text(page: httpx2.Response) -> str:
    """The text of a page, as people read it, with plain hyphens."""
    [main] = re.findall(r"<main.*</main>", page.text.replace("\N{NON-BREAKING HYPHEN}", "-"), re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())
