"""A merchant in the console of a shop whose honey is at the platform, with an agent of the shop beside."""

import contextlib
import html
import re
from collections.abc import AsyncGenerator

import httpx2

from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_scene import SAME_SITE, Admin, hidden_field
from tests.inventory.sync.sync_scene import SyncScene, open_installed_shop

SPREADSHEETS_PATH = "/console/spreadsheets"


class MerchantAtPlatform(Admin):
    """The merchant, and what is at the platform."""

    def __init__(self, at: SyncScene, language: str = "en") -> None:
        super().__init__(at.installing, language=language)
        self.at_platform = at
        self.shop = at.shop

    async def confirm(self, question: httpx2.Response, page: str, **button: str) -> httpx2.Response:
        """Send the form of a page that asks whether the merchant is sure."""
        return await self.http.post(
            self.address_of(page), data={**hidden_fields(question), **button}, headers=SAME_SITE
        )


def hidden_fields(page: httpx2.Response) -> dict[str, str]:
    """The hidden fields of the first form of a page's main part."""
    main = page.text.partition("<main")[2].partition("</form>")[0]
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', main)
    return {html.unescape(name): html.unescape(value) for name, value in fields}


@contextlib.asynccontextmanager
async def open_merchant_at_platform(
    platform_source: PlatformSource, language: str = "en"
) -> AsyncGenerator[MerchantAtPlatform]:
    """The merchant, signed in. The shop has 50 singles, 8 6-packs and 4 12-packs at the platform, and no pool."""
    async with open_installed_shop(platform_source) as scene:
        merchant = MerchantAtPlatform(scene, language)
        async with merchant.http:
            await merchant.open()
            yield merchant


async def upload_spreadsheet(merchant: MerchantAtPlatform, content: bytes, kind: str = "pools") -> httpx2.Response:
    """Send the form with a file."""
    token = hidden_field(await merchant.get(SPREADSHEETS_PATH), "token")
    fields = {"token": token, "kind": kind, "mode": "set", "reason": "", "text": ""}
    files = {"file": ("stock.csv", content, "text/csv")}
    return await merchant.http.post(merchant.address_of(SPREADSHEETS_PATH), data=fields, files=files, headers=SAME_SITE)
