"""A merchant in the console: inside the admin of a shop at the platform, in a browser with cookies."""

import contextlib
import re
from collections.abc import AsyncGenerator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import httpx2

from tests.helpers.inventory_service import Inventory
from tests.helpers.platform_shop import BASE_URL, DOMAIN, PlatformScene, PlatformSource, open_platform_scene

SAME_SITE = {"origin": BASE_URL, "sec-fetch-site": "same-origin"}
FOREIGN = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}


def browser_of(inventory: Inventory, language: str) -> httpx2.AsyncClient:
    """A browser with cookies, which follows no redirects by itself."""
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(inventory.app),
        base_url=inventory.settings.base_url,
        headers={"Accept": "text/html", "Accept-Language": language, "User-Agent": "Firefox of a test"},
    )


class Admin:
    """The admin of a shop, in a browser: it loads pages of the app in a frame."""

    def __init__(self, scene: PlatformScene, domain: str = DOMAIN, *, language: str = "en", user: int = 1) -> None:
        self.scene = scene
        self.inventory: Inventory = scene.inventory
        self.domain = domain
        self.user = user
        self.http = browser_of(scene.inventory, language)

    def token(self, **claims: Any) -> str:
        """A session token, as the platform gives one to this merchant."""
        return self.scene.platform.oauth.session_token(self.domain, user=self.user, **claims)

    async def load(self, path: str = "/console", token: str | None = None, shop: str = "") -> httpx2.Response:
        """Load a page of the app as the platform does: with the shop and a session token."""
        query = {"embedded": "1", "host": "x", "shop": shop or self.domain, "id_token": token or self.token()}
        return await self.http.get(f"{path}?{urlencode(query)}")

    async def open(self) -> "Admin":
        """Open the app, so that there is a session."""
        begun = await self.load()
        assert begun.status_code == 303, begun.text
        return self

    def address_of(self, path: str) -> str:
        """The address of a page in the frame, as links have it."""
        return f"{path}{'&' if '?' in path else '?'}{urlencode({'shop': self.domain})}"

    async def get(self, path: str = "/console") -> httpx2.Response:
        """Follow a link in the frame."""
        return await self.http.get(self.address_of(path))

    async def send(self, page: str, action: str = "", **fields: str) -> httpx2.Response:
        """Open a page in the frame, and send its form with these fields, and with its hidden ones."""
        form_page = await self.get(page)
        tokens = {name: value for name in ("token", "once") if (value := hidden_field(form_page, name))}
        return await self.http.post(self.address_of(action or page), data={**tokens, **fields}, headers=SAME_SITE)

    def policy(self, answer: httpx2.Response) -> str:
        """The sites that may show an answer in a frame."""
        match = re.search(r"frame-ancestors ([^;]*)", answer.headers["content-security-policy"])
        assert match
        return match[1]


@contextlib.asynccontextmanager
async def in_the_admin(platform_source: PlatformSource, **options: Any) -> AsyncGenerator[Admin]:
    """A merchant in whose shop the app is installed, and who has not opened it."""
    async with open_platform_scene(platform_source) as scene:
        scene.platform.install(DOMAIN)
        admin = Admin(scene, **options)
        async with admin.http:
            yield admin


def hidden_field(page: httpx2.Response, name: str) -> str:
    """The value of the first hidden field with a name; empty if there is none."""
    match = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    return unescape(match[1]) if match else ""
