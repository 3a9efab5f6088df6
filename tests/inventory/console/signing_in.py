"""A merchant who signs in by a link, in a window of its own."""

from holdfast.inventory.merchants import operations
from tests.helpers.form_browser import FormBrowser
from tests.helpers.inventory_service import Inventory, Shop
from tests.inventory.console.merchant_scene import browser_of

EMAIL = "ada@example.com"


class Owner(FormBrowser):
    """The browser of a merchant."""

    def __init__(self, inventory: Inventory, language: str = "en") -> None:
        super().__init__(browser_of(inventory, language), inventory.database)
        self.inventory = inventory

    async def ask(self, email: str = EMAIL, return_to: str = "") -> str:
        return await super().ask(email, return_to)

    async def sign_in(self, email: str = EMAIL) -> "Owner":
        done = await self.send(await self.ask(email))
        assert (done.status_code, done.headers["location"]) == (303, "/console"), done.text
        return self


async def add_merchant(inventory: Inventory, shop: Shop, email: str = EMAIL) -> int:
    """Let a merchant sign in to a shop. Returns the id of the merchant."""
    return await inventory.database.transact(lambda tx: operations.add_owner(tx, shop.id, email))
