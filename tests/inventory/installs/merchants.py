"""The storefront platform's double beside the service, and a merchant's browser between them."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import httpx2

from holdfast.inventory.installs.routes import PATH as INSTALL
from holdfast.inventory.resources import Steps
from holdfast.inventory.settings import Settings
from holdfast.kit.running import steps
from holdfast_demo.shopify import seed
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.platform_state import App
from tests.inventory.support import Inventory, Shop, running
from tests.serving import PLAIN, listener, serving

CLIENT, SECRET = "client-tests", "shpss_tests"
DOMAIN = "ada.myshopify.com"
BASE_URL = "https://stock.example.com"


class Scene:
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
        place = urlsplit(begun.headers["location"])
        answer = await self.browser.post(f"{place.path}?{place.query}")
        assert answer.status_code in {302, 303}, answer.text
        back = answer.headers["location"]
        assert back.startswith(f"{base_url}{INSTALL}?"), back
        return urlsplit(back).query

    async def come_back(self, query: str, **headers: str) -> httpx2.Response:
        """Come back from the platform, in the browser that began."""
        return await self.inventory.http.get(f"{INSTALL}?{query}", headers={"cookie": self.cookie, **headers})

    async def install(self, base_url: str = BASE_URL) -> httpx2.Response:
        """Install the app at the shop, from the beginning to the page at the end."""
        return await self.come_back(await self.agree(await self.begin(), base_url))

    async def shop(self, key: str = "") -> Shop:
        """The shop at the service."""
        [(id,)] = await self.inventory.sql("select id from shops where domain = %(domain)s", domain=DOMAIN)
        return Shop(self.inventory.http, self.inventory.settings, id, DOMAIN, key)

    async def row(self, columns: str, table: str = "installs") -> tuple[Any, ...]:
        """What is stored of the only install, or of its tokens."""
        [row] = await self.inventory.sql(f"select {columns} from {table}")
        return row


@contextlib.asynccontextmanager
async def beside_the_platform(settings: Settings, base_url: str = BASE_URL) -> AsyncGenerator[Scene]:
    """The service under these settings, and the platform at which it is an app with this address."""
    here = listener()
    address = f"http://127.0.0.1:{here.getsockname()[1]}"
    platform = ShopifyDouble(address, App(CLIENT, SECRET, base_url))
    platform.world.clock.advance(-60)  # what is there was not made just now
    platform.open(DOMAIN)
    seed.fill(platform.world, DOMAIN)
    platform.world.clock.advance(60)
    changed = settings.model_copy(
        update={
            "base_url": base_url,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "platform_address": f"{address}/{{shop}}",
        }
    )
    try:
        async with (
            serving(platform.app, here),
            httpx2.AsyncClient(base_url=address, verify=PLAIN, trust_env=False) as browser,
            running(changed) as inventory,
        ):
            yield Scene(inventory, platform, browser)
    finally:
        platform.close()
