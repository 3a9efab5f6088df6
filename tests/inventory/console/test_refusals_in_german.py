"""Every message of a refused form, and the names in it, are in the language of the page."""

import csv
from collections.abc import AsyncGenerator

import pytest

from holdfast.inventory.spreadsheets.model import MAX_ROWS
from tests.helpers.german import Both, wrong
from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop
from tests.inventory.console.signing_in import Owner, add_merchant

SPREADSHEETS = "/console/spreadsheets"


@pytest.fixture
async def both(inventory: Inventory, shop: Shop) -> AsyncGenerator[Both]:
    """Sends the forms of a merchant who is signed in to the console of the shop."""
    owner = Owner(inventory)
    await add_merchant(inventory, shop)
    async with owner.http:
        await owner.sign_in()
        yield Both(owner.http)


async def test_refusals_of_rows_of_a_spreadsheet_are_in_german(both: Both, shop: Shop) -> None:
    await shop.create_pool(5, name="Gläser")

    for text in (
        "",
        "Farbe\nrot\n",
        "name,name\n",
        "quantity\n1\n",
        "name\n",
        'name\n"Gläser\n',
        'name\n"Gläser"x\n',
        f'name\n"{"x" * csv.field_size_limit()}y"\n',
        "name,quantity\nGläser\n",
        "name,quantity\nGläser,viele\nDeckel,-1\n",
        "name,quantity,version\nGläser,3,999\nDeckel,1,\nDeckel,1,\n",
        f"name\n{'x' * 999}\n",
        "name\n" + "x\n" * (MAX_ROWS + 1),
        "name\n" + "x\n" * 300,
    ):
        await both.send(SPREADSHEETS, kind="pools", mode="set", text=text)
    for text in (
        f"pool,variant_gid,units_per_sale\nDosen,{SINGLE},1\n",
        f"pool,variant_gid,units_per_sale\nGläser,{SIX_PACK},6\nGläser,{SIX_PACK},6\n",
        "pool,variant_gid,units_per_sale\nGläser,sechs,0\n",
    ):
        await both.send(SPREADSHEETS, kind="members", mode="set", text=text)

    nothing = "Nichts wurde importiert."
    both.check(
        f"{nothing} wählen Sie eine Datei von höchstens 400 kB, oder fügen Sie die Zeilen ein",
        f"{nothing} In Zeile 1 fehlen die Spalten: name",
        f"{nothing} Zeile 2: hat 1 Zellen unter 2 Spalten",
        f'{nothing} Zeile 2: quantity: muss eine ganze Zahl oder leer sein, nicht "viele" '
        "Zeile 3: quantity: muss mindestens 0 sein, nicht -1",
        f"{nothing} Zeile 2: pool: kein Pool heißt Dosen",
    )


async def test_refusals_in_the_form_of_a_new_pool_are_in_german(both: Both) -> None:
    for fields in wrong(("name", "unit", "quantity", "buffer", "low_stock_at", "reason")):
        if fields["name"] not in {"0", "7"}:
            await both.send("/console/pools/new", **fields)

    both.check(
        "Geben Sie einen Namen ein, zum Beispiel Honiggläser.",
        "Geben Sie eine Zahl ein, zum Beispiel 30.",
        "Geben Sie 0 oder mehr ein, zum Beispiel 10.",
        "Geben Sie höchstens 1.000.000.000.000 ein.",
    )
