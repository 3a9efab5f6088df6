"""Importing pools and variants from CSV: all rows, or none, and a dry run unless one says otherwise."""

import re
from typing import Any

import pytest

from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, Inventory, Shop


async def load(shop: Shop, text: str, kind: str = "pools", **options: Any) -> dict[str, Any]:
    return await shop.call("import_csv", **{"kind": kind, "text": text, "dry_run": False, **options})


async def refused_lines(shop: Shop, text: str, kind: str = "pools", **options: Any) -> list[tuple[int, str]]:
    """The lines for which an import is refused, and why."""
    answer = await shop.refusal("import_csv", **{"kind": kind, "text": text, "dry_run": False, **options})
    assert (answer["code"], list(answer["errors"])) == ("validation_failed", ["text"])
    lines = [re.fullmatch(r"line (\d+): (.+)", message) for message in answer["errors"]["text"]]
    return [(int(line[1]), line[2]) for line in lines if line]


async def test_unknown_pools_are_created_and_known_ones_are_changed(shop: Shop) -> None:
    jars = await shop.create_pool(50, name="Honey jars", buffer=3, low_stock_at=9)

    done = await load(shop, "name,unit,quantity,buffer,low_stock_at\nHONEY JARS,,44,,7\nHoney,g,5000,250,\n")

    assert (done["applied"], done["created"], done["updated"], done["unchanged"]) == (True, 1, 1, 0)
    assert [(row["line"], row["outcome"], row["message"]) for row in done["rows"]] == [
        (2, "updated", "HONEY JARS"),
        (3, "created", "Honey"),
    ]
    pools = (await shop.call("list_pools"))["pools"]
    fields = ("name", "unit", "on_hand", "buffer", "low_stock_at")
    assert [tuple(pool[name] for name in fields) for pool in pools] == [
        ("Honey jars", "units", 44, 3, 7),
        ("Honey", "g", 5000, 250, None),
    ]
    assert pools[0]["id"] == jars["id"]
    assert done["version"] == max(pool["version"] for pool in pools)


async def test_quantities_are_entries_of_one_change(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars")

    await load(shop, "name,quantity\nJars,44\nLids,9\n", reason="Counted in autumn.")

    entries = (await shop.entries())[:2]
    assert [(entry["kind"], entry["delta"], entry["balance_after"], entry["reason"]) for entry in entries] == [
        ("import", 9, 9, "Counted in autumn."),
        ("import", -6, 44, "Counted in autumn."),
    ]
    assert len({entry["version"] for entry in entries}) == 1


async def test_quantities_can_be_added_to_what_is_there(shop: Shop) -> None:
    jars, lids = await shop.create_pool(50, name="Jars"), await shop.create_pool(9, name="Lids")

    await load(shop, "name,quantity\nJars,-6\nLids,3\nCorks,4\n", mode="adjust")

    assert (await shop.on_hand(jars["id"]), await shop.on_hand(lids["id"])) == (44, 12)
    assert [pool["on_hand"] for pool in (await shop.call("list_pools", query="corks"))["pools"]] == [4]


async def test_a_sheet_of_members_links_new_variants_and_changes_linked_ones(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars", members=[PACKS[0]])
    await shop.create_pool(9, name="Boxes")
    text = f"pool,variant_gid,units_per_sale,sku,title\njars,{SINGLE},2,HONEY-1,One\nBoxes,{SIX_PACK},1,,\n"

    done = await load(shop, text, "members")

    assert (done["created"], done["updated"]) == (1, 1)
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 25, SIX_PACK: 9}
    assert (await shop.call("find_variant", sku="honey-1"))["variants"][0]["title"] == "One"


async def test_variants_are_named_by_their_skus(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars", members=[{**PACKS[0], "sku": "HONEY-1"}])
    await shop.create_pool(9, name="Boxes")

    done = await load(shop, "pool;sku;units_per_sale\nJars;honey-1;2\nBoxes;HONEY-1;1\n", "members")

    assert (done["created"], done["updated"]) == (1, 1)
    assert [row["message"] for row in done["rows"]] == ["honey-1 in Jars", "HONEY-1 in Boxes"]
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 9}
    assert (await shop.call("find_variant", gid=SINGLE))["variants"][0]["sku"] == "HONEY-1"


async def test_a_sku_of_no_variant_or_of_several_is_refused(shop: Shop, inventory: Inventory) -> None:
    await shop.create_pool(50, name="Jars", members=[{**member, "sku": "HONEY"} for member in PACKS[:2]])
    await (await inventory.create_shop()).create_pool(9, members=[{**PACKS[0], "sku": "THEIRS"}])
    before = await inventory.all_rows()

    errors = await refused_lines(shop, "pool,sku,units_per_sale\nJars,HONEY,1\nJars,THEIRS,1\nJars,,1\n", "members")

    assert errors == [
        (2, "sku: several variants have the SKU HONEY: name one by its variant_gid"),
        (3, "sku: no variant has the SKU THEIRS"),
        (4, "variant_gid: name a variant by its variant_gid, or by its sku"),
    ]
    assert await inventory.all_rows() == before


async def test_one_variant_in_two_pools_is_a_kit(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars")
    await shop.create_pool(3, name="Boxes")

    await load(shop, f"pool,variant_gid,units_per_sale\nJars,{SIX_PACK},6\nBoxes,{SIX_PACK},1\n", "members")

    assert (await shop.read_storefront()).json()["variants"] == {SIX_PACK: 3}


async def test_an_import_is_a_dry_run_unless_the_call_says_otherwise(shop: Shop, inventory: Inventory) -> None:
    await shop.create_pool(50, name="Jars")
    before = await inventory.all_rows()

    tried = await shop.call("import_csv", kind="pools", text="name,quantity\nJars,44\nLids,9\n")

    assert (tried["dry_run"], tried["applied"], tried["version"]) == (True, False, None)
    assert (tried["created"], tried["updated"]) == (1, 1)
    assert await inventory.all_rows() == before


async def test_one_bad_row_prevents_the_import_and_every_bad_row_is_named(shop: Shop, inventory: Inventory) -> None:
    await shop.create_pool(50, name="Jars")
    before = await inventory.all_rows()
    text = (
        "name,unit,quantity,buffer,low_stock_at\n"
        "Jars,units,44,0,0\n"
        ",units,1,0,0\n"
        "Lids,units,many,0,0\n"
        "Corks,units,1,-1,0\n"
        "Wax,units,1.5,0,0\n"
        "Jars,units,1,0,0\n"
        "Twine,m,-1,0,0\n"
        "Short,units\n"
    )

    errors = await refused_lines(shop, text)

    assert await refused_lines(shop, text, dry_run=True) == errors
    assert [line for line, _ in errors] == [3, 4, 5, 6, 7, 8, 9]
    fields = [message.partition(":")[0] for _, message in errors]
    assert fields[1:6] == ["quantity", "buffer", "quantity", "name", "quantity"]
    assert "name" in fields[0]
    assert "2 cells under 5 columns" in fields[6]
    assert await inventory.all_rows() == before


@pytest.mark.parametrize(
    "cell", ["1e400", "NaN", "inf", "1e30", "1_000", "\u0663", "1" * 5_000, "0x10", "5 units", '"1,5"', "1.5", "TRUE"]
)
async def test_a_cell_that_is_no_number_of_ours_is_refused(shop: Shop, cell: str) -> None:
    errors = await refused_lines(shop, f"name,quantity\nJars,{cell}\n")

    assert [(line, message.partition(":")[0]) for line, message in errors] == [(2, "quantity")]


async def test_a_sheet_without_a_column_for_names_is_refused(shop: Shop) -> None:
    for kind, text in (("pools", "unit,quantity\ng,5\n"), ("members", f"pool,variant_gid\nJars,{SINGLE}\n")):
        answer = await shop.refusal("import_csv", kind=kind, text=text, dry_run=False)
        assert (answer["code"], list(answer["errors"])) == ("validation_failed", ["text"])


async def test_a_variant_of_an_unknown_pool_is_refused(shop: Shop, inventory: Inventory) -> None:
    await shop.create_pool(50, name="Jars")
    await (await inventory.create_shop()).create_pool(50, name="Theirs")
    before = await inventory.all_rows()
    text = (
        "pool,variant_gid,units_per_sale\n"
        f"Jars,{SINGLE},1\n"
        f"Theirs,{SINGLE},1\n"
        f"jars,{SINGLE},2\n"
        f"Jars,1006,6\n"
        f"Jars,{SIX_PACK},0\n"
    )

    errors = await refused_lines(shop, text, "members")

    assert [(line, message.partition(":")[0]) for line, message in errors] == [
        (3, "pool"),
        (4, "variant_gid"),
        (5, "variant_gid"),
        (6, "units_per_sale"),
    ]
    assert await inventory.all_rows() == before


async def test_a_quantity_below_the_held_one_prevents_the_import(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50, name="Jars")
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=10)
    before = await inventory.all_rows()

    answer = await shop.refusal("import_csv", kind="pools", text="name,quantity\nLids,5\nJars,9\n", dry_run=False)

    assert (answer["code"], answer["pool_id"], answer["available"]) == ("not_enough_stock", pool["id"], 40)
    assert await inventory.all_rows() == before


@pytest.mark.parametrize(
    "text",
    [
        "name,quantity\r\nJars,44\r\n",
        "\ufeffname,quantity\nJars,44\n",
        "quantity,name\n44,Jars",
        " Name , QUANTITY \n Jars , 44 \n",
        'name,quantity\n"Jars","44"\n\n\n',
        "name,quantity\n\nJars,44\n,\n",
        "name,quantity,unit\nJars,'44,\n".replace("'", ""),
        'name;quantity;unit\r\n"Jars";44;\r\n',
        "name\tquantity\tunit\nJars\t44\t\n",
        "name\tquantity\tunit\nJars\t44",
        "sep=;\r\nname;quantity\r\nJars;44\r\n",
        "\ufeffsep=,\nname,quantity\nJars,44\n",
        '"sep=;"\nname;quantity\nJars;44\n',
        "SEP=\t\nname\tquantity\nJars\t44\n",
        "sep=;,,\nname,quantity,unit\nJars,44,\n",
        "sep=|\nname|quantity\nJars|44\n",
        "name,quantity,\nJars,44,\n",
        "name;quantity;;\nJars;44;;\n;;;\n",
        "name,quantity,\nJars,44\n",
        "name,quantity\nJars,44,\n",
        "name,quantity\nJars,44, ,\n , \n",
    ],
    ids=[
        *("CRLF", "BOM", "other order", "capitals and spaces", "quotes", "empty lines", "empty cell"),
        *("semicolons", "tabs", "tabs without the last"),
        *("sep", "sep after a BOM", "sep in quotes", "sep with a tab", "sep among cells", "sep with a bar"),
        *("an empty column", "empty columns", "an empty column of names only", "an empty cell more", "spaces"),
    ],
)
async def test_sheets_are_read_as_programs_write_them(shop: Shop, text: str) -> None:
    pool = await shop.create_pool(50, name="Jars")

    done = await load(shop, text)

    assert (done["applied"], done["updated"], done["created"]) == (True, 1, 0)
    assert await shop.on_hand(pool["id"]) == 44


@pytest.mark.parametrize("text", ["name,quantity,\nJars,1,000\n", "name,quantity\nJars,1,000\n"])
async def test_a_cell_without_a_column_is_refused(shop: Shop, text: str) -> None:
    await shop.create_pool(50, name="Jars")

    assert await refused_lines(shop, text) == [(2, "has 3 cells under 2 columns")]


async def test_line_numbers_include_the_line_that_names_the_separator(shop: Shop) -> None:
    assert await refused_lines(shop, "sep=;\nname;quantity\nJars;many\n") == [
        (3, 'quantity: must be an integer or null, not "many"')
    ]
    answer = await shop.refusal("import_csv", kind="pools", text="sep=;\nname;on_hand\nJars;1\n")
    assert answer["errors"]["text"][0].startswith("line 2 must name columns")


async def test_line_numbers_are_those_of_an_editor(shop: Shop) -> None:
    """A cell may have several lines; a row is named by its last."""
    errors = await refused_lines(shop, 'name,unit\n"two\nlines",g\nbad row\n')

    assert errors[-1][0] == 4


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "name,name\na,b\n",
        "name,,quantity\na,,1\n",
        "sep=;\n",
        "sep=;",
        "name,on_hand\na,1\n",
        'name\n"a',
        'name\n"a"b\n',
        "name\n" + "x" * 200_000,
        "\n",
        ",",
        "name\n" + "".join(f"Pool {n}\n" for n in range(2_001)),
    ],
    ids=lambda text: text[:20],
)
async def test_a_malformed_sheet_is_refused_as_a_whole(shop: Shop, inventory: Inventory, text: str) -> None:
    before = await inventory.all_rows()

    answer = await shop.refusal("import_csv", kind="pools", text=text, dry_run=False)

    assert (answer["code"], list(answer["errors"])) == ("validation_failed", ["text"])
    assert await inventory.all_rows() == before


async def test_two_thousand_rows_are_taken_and_two_hundred_are_reported(shop: Shop) -> None:
    text = "name,quantity\n" + "".join(f"Pool no. {n},{n}\n" for n in range(2_000))

    done = await load(shop, text)

    assert (done["created"], len(done["rows"])) == (2_000, 200)
    assert len(await shop.entries(limit=200, kinds=["import"])) == 200
    assert (await shop.call("export_csv", kind="pools"))["rows"] == 2_000


async def test_an_archived_pool_is_not_found_by_its_name(shop: Shop) -> None:
    pool = await shop.create_pool(50, name="Jars")
    await shop.call("archive_pool", pool_id=pool["id"])

    done = await load(shop, "name,quantity\nJars,44\n")

    assert (done["created"], await shop.on_hand(pool["id"])) == (1, 50)


async def test_storefronts_show_an_import_at_once(shop: Shop) -> None:
    await shop.create_golden_pool()
    assert (await shop.read_storefront()).json()["variants"][SINGLE] == 50

    await load(shop, "name,quantity\nHoney jars,44\n")

    assert (await shop.read_storefront()).json()["variants"][SINGLE] == 44


async def test_a_sheet_without_rows_is_refused(shop: Shop, inventory: Inventory) -> None:
    await shop.create_golden_pool()
    before = await inventory.all_rows()

    answer = await shop.refusal("import_csv", kind="pools", text="name,quantity\n", dry_run=False)

    assert (answer["code"], list(answer["errors"])) == ("validation_failed", ["text"])
    assert await inventory.all_rows() == before


async def test_a_sheet_without_changes_is_accepted_and_stores_nothing(shop: Shop, inventory: Inventory) -> None:
    await shop.create_golden_pool()
    before = await inventory.all_rows()

    done = await load(shop, "name,quantity\nHoney jars,50\n")

    assert (done["applied"], done["unchanged"], done["version"]) == (False, 1, None)
    assert await inventory.all_rows() == before


async def test_a_refused_import_names_two_hundred_bad_rows_and_counts_the_rest(shop: Shop) -> None:
    text = "name,quantity\n" + "".join(f"Pool no. {n},many\n" for n in range(300))

    answer = await shop.refusal("import_csv", kind="pools", text=text, dry_run=False)

    assert answer["message"] == "Nothing was imported: 300 rows are not acceptable."
    assert len(answer["errors"]["text"]) == 201
    assert answer["errors"]["text"][-1] == "and 100 more rows"
