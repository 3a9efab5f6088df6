"""A merchant who signs in by a link, in a window of its own."""

import httpx2

from holdfast.accounts.signin import links
from holdfast.inventory.merchants import operations
from tests.inventory.console.merchant_scene import browser_of, hidden_field
from tests.inventory.support import Inventory, Shop

EMAIL = "ada@example.com"


class Owner:
    """A browser with cookies, which follows no redirects by itself."""

    def __init__(self, inventory: Inventory, language: str = "en") -> None:
        self.inventory = inventory
        self.http = browser_of(inventory, language)

    async def get(self, path: str) -> httpx2.Response:
        return await self.http.get(path)

    async def send(self, page: str, action: str = "", **fields: str) -> httpx2.Response:
        """Open a page, and send its form with these fields."""
        form_page = await self.get(page)
        return await self.http.post(action or page, data={"token": hidden_field(form_page, "token"), **fields})

    async def ask(self, email: str = EMAIL, return_to: str = "") -> str:
        """Ask for a link. Returns its path, which only the mail has."""
        sent = await self.send("/sign-in", email=email, return_to=return_to)
        assert sent.headers["location"] == "/sign-in/sent", sent.text
        [(id,)] = await self.inventory.sql("select max(id) from sign_in_links")
        return self.path(id)

    def path(self, id: int) -> str:
        """The path of a link."""
        return f"/sign-in/{links.encode_token(self.inventory.database.resources.secret, id)}"

    async def sign_in(self, email: str = EMAIL) -> "Owner":
        done = await self.send(await self.ask(email))
        assert (done.status_code, done.headers["location"]) == (303, "/console"), done.text
        return self


async def add_merchant(inventory: Inventory, shop: Shop, email: str = EMAIL) -> int:
    """Let a merchant sign in to a shop. Returns the id of the merchant."""
    return await inventory.database.transact(lambda tx: operations.add_owner(tx, shop.id, email))
