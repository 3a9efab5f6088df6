"""An exported sheet can be imported again, and then changes nothing."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from holdfast.inventory.spreadsheets import sheet
from holdfast.kit.contract.csv_cells import with_separator
from tests.helpers.inventory_service import PACKS, SINGLE, Inventory, Shop

NAMES = [
    "Honey jars",
    "Honey, jars",
    'The "best" honey',
    "ÄPFEL",
    "ΟΔΟΣ",
    "İstanbul",
    "STRASSE ß",
    "蜂蜜",
    "🍯 jars",
    "=1+1",
    "-5",
    "@home",
    "'quoted'",
    "'=quoted",
    "\N{FULLWIDTH EQUALS SIGN}1+1",
    "null",
    "true",
    "12",
    "1e3",
    "a;b",
    "back\\slash",
]


async def export_csv(shop: Shop, kind: str) -> str:
    return (await shop.call("export_csv", kind=kind))["csv"]


def rows_without_ids(text: str) -> list[dict[str, str]]:
    """The rows of a sheet without their versions and ids of pools, which belong to a shop."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: cell for name, cell in row.items() if name not in {"version", "pool_id"}} for row in rows]


@pytest.mark.parametrize("name", NAMES)
async def test_a_pool_is_imported_under_its_own_name_and_not_as_another(shop: Shop, name: str) -> None:
    pool = await shop.create_pool(50, name=name, unit="g", buffer=3, members=[{**PACKS[0], "sku": name, "title": name}])
    before = {kind: await export_csv(shop, kind) for kind in ("pools", "members")}

    for kind, text in before.items():
        done = await shop.call("import_csv", kind=kind, text=text, dry_run=False)
        assert (done["created"], done["updated"] + done["unchanged"]) == (0, 1), done

    for kind, text in before.items():
        assert rows_without_ids(await export_csv(shop, kind)) == rows_without_ids(text)
    [only] = (await shop.call("list_pools"))["pools"]
    assert (only["id"], only["name"], only["on_hand"]) == (pool["id"], name, 50)
    [variant] = (await shop.call("find_variant", gid=SINGLE))["variants"]
    assert (variant["sku"], variant["title"]) == (name, name)


@pytest.mark.parametrize("kind", ["pools", "members"])
async def test_an_unchanged_exported_sheet_changes_nothing(shop: Shop, inventory: Inventory, kind: str) -> None:
    await shop.create_golden_pool()
    text = await export_csv(shop, kind)
    before = await inventory.all_rows()

    result = await shop.call("import_csv", kind=kind, text=text, dry_run=False)

    assert {row["outcome"] for row in result["rows"]} == {"unchanged"}
    assert await inventory.all_rows() == before


async def test_the_exported_sheets_of_one_shop_can_furnish_another(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    for name in NAMES[:4]:
        await shop.create_pool(50, name=name, unit="g", low_stock_at=4)
    await shop.create_pool(3, name="Boxes", members=PACKS)

    for kind in ("pools", "members"):
        await other.call("import_csv", kind=kind, text=await export_csv(shop, kind), dry_run=False)

    for kind in ("pools", "members"):
        assert rows_without_ids(await export_csv(other, kind)) == rows_without_ids(await export_csv(shop, kind))
    assert (await other.read_storefront()).json()["variants"] == (await shop.read_storefront()).json()["variants"]


async def test_a_row_with_the_id_of_its_pool_renames_it(shop: Shop) -> None:
    pool = await shop.create_pool(50, name="Jars", members=[PACKS[0]])
    members = await export_csv(shop, "members")
    text = (await export_csv(shop, "pools")).replace("Jars,units,50", "Honey,units,44")

    done = await shop.call("import_csv", kind="pools", text=text, dry_run=False)

    changes = [{"column": "quantity", "before": 50, "after": 44}]
    row = {"line": 2, "outcome": "updated", "message": "Jars → Honey", "changes": changes}
    assert (done["created"], done["rows"]) == (0, [row])
    [only] = (await shop.call("list_pools"))["pools"]
    assert (only["id"], only["name"], only["on_hand"]) == (pool["id"], "Honey", 44)
    # The file of variants still has the old name; the id finds the pool.
    assert (await shop.call("import_csv", kind="members", text=members))["unchanged"] == 1


async def test_an_id_and_a_name_of_two_pools_are_refused(shop: Shop, inventory: Inventory) -> None:
    jars, lids = await shop.create_pool(50, name="Jars"), await shop.create_pool(9, name="Lids")
    before = await inventory.all_rows()
    conflict = f"line 2: pool_id: pool {jars['id']} is Jars, and Lids is another pool"

    for kind, text in (
        ("pools", f"name,pool_id\nLids,{jars['id']}\n"),
        ("members", f"pool,variant_gid,units_per_sale,pool_id\nLids,{SINGLE},1,{jars['id']}\n"),
    ):
        refusal = await shop.refusal("import_csv", kind=kind, text=text, dry_run=False)
        assert refusal["errors"] == {"text": [conflict]}
    # Two rows of one pool are refused too: one by its id, one by its name.
    twice = f"name,pool_id\nLids,{lids['id']}\nBoxes,{jars['id']}\nBoxes,\nJars,\n"
    refusal = await shop.refusal("import_csv", kind="pools", text=twice, dry_run=False)
    assert [message[:7] for message in refusal["errors"]["text"]] == ["line 4:", "line 5:"]
    assert await inventory.all_rows() == before


async def test_an_unchanged_deficit_is_imported_as_it_was(shop: Shop, inventory: Inventory) -> None:
    """A quantity below zero cannot be set, but it can stay."""
    pool = await shop.create_pool(0, name="Jars", allow_negative=True)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-5)
    text = await export_csv(shop, "pools")
    before = await inventory.all_rows()

    same = await shop.call("import_csv", kind="pools", text=text, dry_run=False)
    other = await shop.refusal("import_csv", kind="pools", text=text.replace("-5", "-4"), dry_run=False)

    assert (same["unchanged"], len(same["rows"])) == (1, 1)
    assert other["errors"] == {"text": ["line 2: quantity: must be at least 0, not -4"]}
    assert await inventory.all_rows() == before


async def test_an_old_sheet_does_not_undo_later_changes(shop: Shop, inventory: Inventory) -> None:
    """Every row carries the version it was read at; nobody's change is overwritten unseen."""
    pools = [await shop.create_pool(50, name=name) for name in ("Jars", "Lids")]
    text = (await export_csv(shop, "pools")).replace(",50,", ",40,")
    await shop.call("adjust_pool_quantity", pool_id=pools[1]["id"], delta=-6)
    before = await inventory.all_rows()

    refusal = await shop.refusal("import_csv", kind="pools", text=text, dry_run=False)

    assert [message.split(":")[:2] for message in refusal["errors"]["text"]] == [["line 3", " version"]]
    assert await inventory.all_rows() == before


class Counted(Struct):
    """A row of two cells."""

    name: str
    quantity: int


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
names = cells.map(str.strip).filter(bool)


@given(
    rows=st.lists(st.tuples(names, st.integers(-(10**12), 10**12)), max_size=5),
    separator=st.sampled_from([",", ";", "\t"]),
    begin=st.sampled_from(["", "\ufeff", "sep=X\r\n", "\ufeffsep=X\r\n"]),
)
def test_every_exported_text_is_imported_as_it_was(rows: list[tuple[str, int]], separator: str, begin: str) -> None:
    text = begin.replace("X", separator) + with_separator(sheet.to_csv(("name", "quantity"), rows), separator)

    good, refusals = sheet.read_rows(text, Counted)

    assert refusals == []
    assert [(row.name, row.quantity) for _, row in good] == rows


@given(st.lists(cells, max_size=5))
def test_no_exported_cell_begins_with_a_formula(texts: list[str]) -> None:
    text = sheet.to_csv(("name",), [(text,) for text in texts])

    read: list[Any] = [*csv.reader(io.StringIO(text, newline=""))]

    assert len(read) == 1 + len(texts)
    assert not any(row[0].startswith(("=", "+", "-", "@", "\t", "\r")) for row in read[1:])
