"""Pools, their variants and their history as CSV."""

import csv
import io
from typing import Any

import pytest

from holdfast.inventory.spreadsheets import sheet
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop


def rows(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text, newline=""))]


async def test_an_export_of_pools_has_every_field(shop: Shop) -> None:
    jars = await shop.create_pool(50, name="Honey jars", buffer=3, low_stock_at=12)
    honey = await shop.create_pool(0, name="Honey", unit="g")

    export = await shop.call("export_csv", kind="pools")

    assert (export["kind"], export["rows"], export["next_cursor"]) == ("pools", 2, None)
    assert export["csv"].splitlines() == [
        "name,unit,quantity,buffer,low_stock_at,version,pool_id",
        f"Honey jars,units,50,3,12,{jars['version']},{jars['id']}",
        f"Honey,g,0,0,,{honey['version']},{honey['id']}",
    ]


async def test_an_export_of_members_has_every_field(shop: Shop) -> None:
    members = [{**PACKS[1], "sku": "HONEY-6", "title": 'The "six"'}, PACKS[0]]
    id = (await shop.create_pool(50, name="Honey, jars", members=members))["id"]

    export = await shop.call("export_csv", kind="members")

    assert export["csv"].splitlines() == [
        "pool,variant_gid,units_per_sale,sku,title,pool_id",
        f'"Honey, jars",{SINGLE},1,,,{id}',
        f'"Honey, jars",{SIX_PACK},6,HONEY-6,"The ""six""",{id}',
    ]


@pytest.mark.parametrize("reason", ["Sold, at\nthe fair.", "Sold\r\nat", "Sold\r99,1,adjust", '"quoted"', " ", ","])
async def test_an_export_of_the_history_has_every_field_newest_first(shop: Shop, reason: str) -> None:
    pool = await shop.create_pool(50)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6, reason=reason)

    exported_rows = rows((await shop.call("export_csv", kind="history"))["csv"])

    entries = await shop.entries()
    assert exported_rows == [
        {name: "" if value is None else str(value) for name, value in entry.items()}
        | {"pool": pool["name"], "skus": "", "titles": ""}
        for entry in entries
    ]


async def test_an_export_of_the_history_names_pool_and_variants_of_a_sale(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars", members=[{**PACKS[1], "sku": "HONEY-6", "title": "6-pack"}, PACKS[0]])
    await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
    await shop.call("record_sale", variant_gid=SINGLE, quantity=1)

    exported_rows = rows((await shop.call("export_csv", kind="history"))["csv"])

    assert [(row["pool"], row["skus"], row["titles"]) for row in exported_rows] == [
        ("Jars", "", ""),
        ("Jars", "HONEY-6", "6-pack"),
        ("Jars", "", ""),
    ]


@pytest.mark.parametrize(
    "formula",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\N{FULLWIDTH EQUALS SIGN}1+1", "\N{FULLWIDTH PLUS SIGN}1"),
        *("\N{FULLWIDTH HYPHEN-MINUS}1", "\N{FULLWIDTH COMMERCIAL AT}SUM(A1)"),
    ],
)
async def test_a_cell_that_a_spreadsheet_program_would_run_is_marked_as_text(shop: Shop, formula: str) -> None:
    pool = await shop.create_pool(50, members=[{**PACKS[0], "sku": formula, "title": formula}])
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6, reason=formula)

    members = rows((await shop.call("export_csv", kind="members"))["csv"])
    history = rows((await shop.call("export_csv", kind="history"))["csv"])

    assert (members[0]["sku"], members[0]["title"], history[0]["reason"]) == (f"'{formula}",) * 3
    # A number is a number, and no formula.
    assert history[0]["delta"] == "-6"


@pytest.mark.parametrize("space", ["\t", "\r", "\n"])
def test_a_cell_that_begins_with_a_tab_or_a_new_line_is_marked_as_text(space: str) -> None:
    [row] = csv.reader(io.StringIO(sheet.to_csv(["name"], [[f"{space}=1+1"]]).split("\r\n", 1)[1], newline=""))

    assert row == [f"'{space}'=1+1"]


async def test_archived_pools_are_left_out(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("archive_pool", pool_id=pool["id"])

    assert (await shop.call("export_csv", kind="pools"))["rows"] == 0
    assert (await shop.call("export_csv", kind="members"))["rows"] == 0


@pytest.mark.parametrize(("kind", "count"), [("pools", 5), ("members", 5), ("history", 5)])
async def test_pages_of_an_export_follow_each_other(shop: Shop, kind: str, count: int) -> None:
    for number in range(5):
        await shop.create_pool(1 + number, members=[{**PACKS[0], "units_per_sale": 1 + number}])
    seen: list[str] = []
    page: dict[str, Any] = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        page = await shop.call("export_csv", kind=kind, limit=2, cursor=page["next_cursor"])
        assert page["rows"] <= 2
        head, *lines = page["csv"].splitlines()
        assert head.count(",") >= 4
        seen += lines

    assert len(seen) == len(set(seen)) == count


async def test_an_export_has_data_of_its_own_shop_only(shop: Shop, inventory: Inventory) -> None:
    await (await inventory.create_shop()).create_golden_pool()

    for kind in ("pools", "members", "history"):
        assert (await shop.call("export_csv", kind=kind))["rows"] == 0


async def test_a_kit_has_a_line_for_every_pool(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars", members=[PACKS[2]])
    await shop.create_pool(9, name="Crates", members=[{"variant_gid": TWELVE_PACK, "units_per_sale": 1}])

    exported_rows = rows((await shop.call("export_csv", kind="members"))["csv"])

    assert [(row["pool"], row["units_per_sale"]) for row in exported_rows] == [("Jars", "12"), ("Crates", "1")]
