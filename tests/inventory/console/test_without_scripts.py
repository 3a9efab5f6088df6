"""The main work of a merchant in a browser that runs no scripts, from signing in to taking a count back."""

from holdfast.inventory.settings import Settings
from tests.helpers.plain_browser import PlainBrowser
from tests.inventory.console.signing_in import EMAIL, Owner, add_merchant
from tests.inventory.sync.sync_scene import open_installed_shop

PLACES = ("", "/low-stock", "/holds", "/spreadsheets", "/sync", "/settings", "/suggestions", "/pools/new")


async def test_a_merchant_imports_accepts_a_suggestion_counts_and_undoes_it(settings: Settings) -> None:
    async with open_installed_shop(settings) as scene:
        inventory = scene.inventory
        await add_merchant(inventory, scene.shop)
        ada = PlainBrowser(inventory.app, inventory.settings.base_url)
        await ada.open("/console")
        await ada.send(email=EMAIL)
        [(id,)] = await inventory.sql("select max(id) from sign_in_links")
        await ada.open(Owner(inventory).path(id))
        await ada.send()
        assert ada.path == "/console"

        # Pools come from a spreadsheet, and from the products of the shop.
        await ada.click(href="/console/spreadsheets$")
        await ada.send({"action": "/spreadsheets"}, kind="pools", text="name,quantity\nJars without labels,30\n")
        await ada.send({"name": "^sure$"})
        await ada.click(href="/console$")
        await ada.click(href="/console/suggestions$")
        await ada.send({"action": "/suggestions"})
        await ada.click(href="/console$")
        assert len(ada.page.find("th", scope="row")) == 2

        # A count, and its opposite.
        await ada.click(href="/console/pools/[0-9]+$")
        pool = ada.path
        [before] = await inventory.sql("select on_hand from pools where id = %(id)s", id=int(pool.rpartition("/")[2]))
        await ada.click(href=f"{pool}/count$")
        await ada.send(quantity="17")
        assert "17" in ada.page.one("section", id="^now$").text
        await ada.click(href=f"{pool}/entries/[0-9]+/undo$")
        await ada.send({"action": "/undo"})
        assert await inventory.sql("select on_hand from pools where id = %(id)s", id=int(pool[15:])) == [before]

        for place in PLACES:
            await ada.open(f"/console{place}")
        for page in ("", "/history", "/adjust", "/transfer", "/edit", "/variants", "/pause", "/archive"):
            await ada.open(f"{pool}{page}")
