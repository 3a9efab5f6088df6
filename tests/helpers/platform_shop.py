"""The storefront platform's double beside the service, and a merchant's browser between them."""

import contextlib
import re
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import httpx2

from holdfast.inventory.installs.routes import INSTALL_PATH
from holdfast.inventory.resources import Steps
from holdfast.inventory.settings import Settings
from holdfast.kit.operations import steps
from holdfast_demo.shopify import seed
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App
from tests.helpers.inventory_service import Inventory, Shop, running_inventory
from tests.helpers.serving import PLAIN, PresentApp, bind_port, running_already, serve_app

KEY_PATTERN = re.compile(r"hf_[A-Za-z0-9_-]{43}")

CLIENT, SECRET = "client-tests", "shpss_tests"
DOMAIN = "ada.myshopify.com"
BASE_URL = "https://stock.example.com"


class PlatformScene:
    """The service, the platform, and a shop there."""

    def __init__(self, inventory: Inventory, platform: ShopifyDouble, browser: httpx2.AsyncClient) -> None:
        self.inventory = inventory
        self.platform = platform
        self.browser = browser
        self.cookie = ""

    @property
    def steps(self) -> Steps:
        """Work of the service itself."""
        return steps.Steps(self.inventory.database)

    def steps_of(self, shop: Shop) -> Steps:
        """Work of the service for a shop."""
        return steps.Steps(self.inventory.database, shop.id)

    async def begin(self, query: str = f"shop={DOMAIN}") -> httpx2.Response:
        """Open `/auth`, and keep the cookie."""
        answer = await self.inventory.http.get(f"/auth?{query}")
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer

    async def agree(self, begun: httpx2.Response, base_url: str = BASE_URL) -> str:
        """Agree at the platform. Returns the query with which it sends the browser back."""
        consent = urlsplit(begun.headers["location"])
        answer = await self.browser.post(f"{consent.path}?{consent.query}")
        assert answer.status_code in {302, 303}, answer.text
        back = answer.headers["location"]
        assert back.startswith(f"{base_url}{INSTALL_PATH}?"), back
        return urlsplit(back).query

    async def come_back(self, query: str, **headers: str) -> httpx2.Response:
        """Come back from the platform, in the browser that began."""
        return await self.inventory.http.get(f"{INSTALL_PATH}?{query}", headers={"cookie": self.cookie, **headers})

    async def install(self, base_url: str = BASE_URL) -> httpx2.Response:
        """Install the app at the shop, from the beginning to the page at the end."""
        return await self.come_back(await self.agree(await self.begin(), base_url))

    async def find_shop(self, key: str = "") -> Shop:
        """The shop at the service."""
        [(id,)] = await self.inventory.sql("select id from shops where domain = %(domain)s", domain=DOMAIN)
        return Shop(self.inventory.http, self.inventory.settings, id, DOMAIN, key)

    async def install_shop(self, *scopes: str) -> Shop:
        """Install the app. Returns the shop at the service, with a key that has these scopes."""
        await self.install()
        shop = await self.find_shop()
        await self.inventory.regenerate_key(shop, *scopes)
        return shop

    async def row(self, columns: str, table: str = "installs") -> tuple[Any, ...]:
        """What is stored of the only install, or of its tokens."""
        [row] = await self.inventory.sql(f"select {columns} from {table}")
        return row


class SharedPlatform:
    """A service and the platform, which the tests of a module share: each scene finds both as new."""

    def __init__(self, inventory: Inventory, template_url: str, address: str, browser: httpx2.AsyncClient) -> None:
        self._inventory = inventory
        self._resources = inventory.database.resources
        self._template_url = template_url
        self._address = address
        self._browser = browser
        self.app = PresentApp()

    @contextlib.asynccontextmanager
    async def open_scene(self) -> AsyncGenerator[PlatformScene]:
        self._inventory.database.resources = self._resources
        await self._inventory.empty(self._template_url)
        self._browser.cookies.clear()
        with contextlib.closing(platform_at(self._address, BASE_URL)) as platform:
            async with self.app.answering_with(platform.app):
                yield PlatformScene(self._inventory, platform, self._browser)


PlatformSource = Settings | SharedPlatform
"""What a scene is opened from: settings, for a service and a platform of its own, or those that a module shares."""


@contextlib.asynccontextmanager
async def open_shared_platform(settings: Settings, template_url: str) -> AsyncGenerator[SharedPlatform]:
    """A service and a platform to share, for as long as the block lasts.

    template_url    the template whose clone is the database of the settings
    """
    port = bind_port()
    address = port.url
    async with (
        running_inventory(app_settings(settings, address, BASE_URL)) as inventory,
        httpx2.AsyncClient(base_url=address, verify=PLAIN, trust_env=False) as browser,
    ):
        shared = SharedPlatform(inventory, template_url, address, browser)
        async with serve_app(running_already(shared.app), port):
            yield shared


@contextlib.asynccontextmanager
async def open_platform_scene(source: PlatformSource, base_url: str = BASE_URL) -> AsyncGenerator[PlatformScene]:
    """A service, and the platform at which it is an app with this address."""
    if isinstance(source, SharedPlatform):
        async with source.open_scene() as scene:
            yield scene
        return
    port = bind_port()
    address = port.url
    with contextlib.closing(platform_at(address, base_url)) as platform:
        async with (
            serve_app(platform.app, port),
            httpx2.AsyncClient(base_url=address, verify=PLAIN, trust_env=False) as browser,
            running_inventory(app_settings(source, address, base_url)) as inventory,
        ):
            yield PlatformScene(inventory, platform, browser)


def platform_at(address: str, base_url: str) -> ShopifyDouble:
    """The platform, with a shop in which something is sold."""
    platform = ShopifyDouble(address, App(CLIENT, SECRET, base_url))
    platform.state.clock.advance(-60)  # what is there was not made just now
    platform.open(DOMAIN)
    seed.fill(platform.state, DOMAIN)
    platform.state.clock.advance(60)
    return platform


def app_settings(settings: Settings, address: str, base_url: str) -> Settings:
    """The settings of a service that is an app of the platform at an address."""
    return settings.model_copy(
        update={
            "base_url": base_url,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "platform_address": f"{address}/{{shop}}",
        }
    )


def key_in(page: str) -> str:
    """The key that a page shows."""
    [key] = KEY_PATTERN.findall(page)
    return key
