"""Two organizers in the console: one at a browser, and another one whose things it must not reach."""

import re
from dataclasses import dataclass
from html import unescape

import httpx2

from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser, token

KEY_PATTERN = re.compile(r"hf_[A-Za-z0-9_-]{43}")

FOREIGN = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


@dataclass
class OrganizerScene:
    """Ada at a browser, signed in, and with a key; and Bob, another organizer."""

    service: Service
    browser: Browser
    ada: Client
    bob: Client

    async def page(self, path: str) -> str:
        """The text of a page, with plain hyphens."""
        page = await self.browser.get(path)
        assert page.status_code == 200, page.text
        return page.text.replace("\N{NON-BREAKING HYPHEN}", "-")

    async def post(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form that was not shown: with the token of another one."""
        page = await self.browser.get("/console/agents")
        return await self.browser.http.post(path, data={"token": token(page), **fields})

    async def foreign(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form from a page of another site, with a token that is good."""
        page = await self.browser.get("/console/agents")
        return await self.browser.http.post(path, data={"token": token(page), **fields}, headers=FOREIGN)


async def open_organizer_scene(service: Service, *, language: str = "en") -> OrganizerScene:
    """Ada and Bob, with one key each."""
    ada, browser = await sign_in_organizer(service, language=language)
    return OrganizerScene(service, browser, ada, await service.organizer("Bob Events"))


def hidden_field(page: httpx2.Response, name: str) -> str:
    """The value of a hidden field in a page."""
    match = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert match, page.text
    return unescape(match[1])


async def create_key(scene: OrganizerScene, name: str, **fields: str) -> httpx2.Response:
    """Fill in the form for a new key, and send it."""
    page = await scene.browser.get("/console/agents")
    form = {"token": token(page), "once": hidden_field(page, "once"), "name": name, **fields}
    return await scene.browser.http.post("/console/agents/keys/new", data=form)
