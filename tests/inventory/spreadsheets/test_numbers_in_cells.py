"""Numbers in the cells of a spreadsheet: one reading only, and the report has the numbers that are written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from holdfast.inventory.spreadsheets import sheet
from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop

TWO_READINGS = {
    "1.000": "quantity: 1.000 can mean 1000 or 1: write the number without separators",
    "1,000": "quantity: 1,000 can mean 1000 or 1: write the number without separators",
    "-1.000": "quantity: -1.000 can mean -1000 or -1: write the number without separators",
    "1.234": "quantity: 1.234 can mean 1234, or 1 and a fraction: write the number without separators",
    "12,500": "quantity: 12,500 can mean 12500, or 12 and a fraction: write the number without separators",
    "0.000": "quantity: write 0, not 0.000",
}
ONE_READING = {
    "5.0": "quantity: write 5, not 5.0",
    "5,00": "quantity: write 5, not 5,00",
    "1000.0": "quantity: write 1000, not 1000.0",
    "1.000.000": "quantity: write 1000000, not 1.000.000",
    "1,000,000": "quantity: write 1000000, not 1,000,000",
    "1 000": "quantity: write 1000, not 1 000",
    "1\u00a0000": "quantity: write 1000, not 1\u00a0000",
    "1\u202f000": "quantity: write 1000, not 1\u202f000",
    "1'000": "quantity: write 1000, not 1'000",
    "1\u2019000": "quantity: write 1000, not 1\u2019000",
    "1.000,00": "quantity: write 1000, not 1.000,00",
    "1,000.00": "quantity: write 1000, not 1,000.00",
    "\u22125": "quantity: write -5, not \u22125",
    "+5": "quantity: write 5, not +5",
    "007": "quantity: write 7, not 007",
    "-0": "quantity: write 0, not -0",
    "\uff15": "quantity: write 5, not \uff15",
}
SHORTENED = ["1E+03", "1e3", "1,23E+12", "1.5E-1", "-1E+03", "1E03"]


@pytest.mark.parametrize("cell", [*TWO_READINGS, *ONE_READING])
async def test_a_number_that_is_not_digits_alone_is_refused_with_what_it_can_mean(shop: Shop, cell: str) -> None:
    """Before, `1.000` was taken for 1, and `5.0` for 5."""
    answer = await shop.refusal("import_csv", kind="pools", text=f"name;quantity\nJars;{cell}\n", mode="adjust")

    assert answer["errors"] == {"text": [f"line 2: {({**TWO_READINGS, **ONE_READING})[cell]}"]}


@pytest.mark.parametrize("cell", SHORTENED)
async def test_a_number_that_a_program_has_shortened_is_refused(shop: Shop, cell: str) -> None:
    """Digits may be lost: 1004 is written as 1E+03 too."""
    answer = await shop.refusal("import_csv", kind="pools", text=f"name;quantity\nJars;{cell}\n", mode="adjust")

    [error] = answer["errors"]["text"]
    assert error == (
        f"line 2: quantity: {cell} was shortened, and digits may be lost: show the column as numbers without decimal "
        "places, and save it again"
    )


NO_NUMBERS = ["null", "none", "true", "-", "--5", "5-", "(5)", "1.", ".5", "1_000", "0,5", "1..000"]


@pytest.mark.parametrize("cell", NO_NUMBERS)
async def test_a_cell_that_is_no_whole_number_is_refused(shop: Shop, cell: str) -> None:
    """Before, `null` was taken for an empty cell."""
    answer = await shop.refusal("import_csv", kind="pools", text=f"name;quantity\nJars;{cell}\n", mode="adjust")

    assert answer["errors"]["text"][0].startswith("line 2: quantity: must be an integer or null, not ")


@pytest.mark.parametrize("column", ["quantity", "buffer", "low_stock_at", "version", "pool_id"])
async def test_every_number_column_of_pools_refuses_ambiguous_numbers(
    shop: Shop, inventory: Inventory, column: str
) -> None:
    await shop.create_pool(50, name="Jars")
    before = await inventory.all_rows()

    for cell in ("1.000", "1E+03", "5.0"):
        text = f"name;{column}\nJars;{cell}\n"
        answer = await shop.refusal("import_csv", kind="pools", text=text, dry_run=False)
        assert answer["errors"]["text"][0].startswith(f"line 2: {column}: ")

    assert await inventory.all_rows() == before


@pytest.mark.parametrize("column", ["units_per_sale", "pool_id"])
async def test_every_number_column_of_members_refuses_ambiguous_numbers(
    shop: Shop, inventory: Inventory, column: str
) -> None:
    """Before, `1.000` units a sale were 1, and 50,000 of something became available."""
    await shop.create_pool(50_000, name="Honey", unit="g")
    before = await inventory.all_rows()

    for cell in ("1.000", "1E+03", "5.0"):
        values = {"pool": "Honey", "variant_gid": SINGLE, "units_per_sale": "1000", column: cell}
        text = f"{';'.join(values)}\n{';'.join(values.values())}\n"
        answer = await shop.refusal("import_csv", kind="members", text=text, dry_run=False)
        assert answer["errors"]["text"][0].startswith(f"line 2: {column}: ")

    assert await inventory.all_rows() == before


class OneNumber(Struct):
    """A row of one cell."""

    quantity: int


@given(st.text(st.sampled_from("0123456789.,'eE+- \u00a0_\u2212\uff11"), max_size=9))
def test_a_cell_is_read_only_if_it_is_the_number_as_written(cell: str) -> None:
    quoted = cell.replace('"', '""')
    rows, refusals = sheet.read_rows(f'quantity\n"{quoted}"\n', OneNumber)

    for _, row in rows:
        assert f"{row.quantity}" == cell.strip().removeprefix("'")
        assert not refusals


# The report


def changes(done: dict[str, Any]) -> list[list[tuple[str, Any, Any]]]:
    return [[(cell["column"], cell["before"], cell["after"]) for cell in row["changes"]] for row in done["rows"]]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_the_report_of_pools_has_the_numbers_that_are_written(shop: Shop, dry_run: bool) -> None:
    await shop.create_pool(50, name="Jars", buffer=3)
    await shop.create_pool(9, name="Lids")
    text = "name,unit,quantity,buffer,low_stock_at\nJars,,44,3,7\nLids,,9,,\nHoney,g,5000,,\n"

    done = await shop.call("import_csv", kind="pools", text=text, dry_run=dry_run)

    assert changes(done) == [
        [("quantity", 50, 44), ("low_stock_at", None, 7)],
        [],
        [("unit", None, "g"), ("quantity", None, 5000)],
    ]


async def test_the_report_of_added_quantities_has_the_sums(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars")
    await shop.create_pool(9, name="Lids")

    done = await shop.call("import_csv", kind="pools", text="name,quantity\nJars,-6\nCorks,4\nLids,0\n", mode="adjust")

    assert changes(done) == [[("quantity", 50, 44)], [("quantity", None, 4)], []]


async def test_the_report_of_members_has_the_units_that_a_sale_takes(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars", members=[{"variant_gid": SINGLE, "units_per_sale": 1}])
    text = f"pool,variant_gid,units_per_sale,sku\nJars,{SINGLE},2,\nJars,{SIX_PACK},6,HONEY-6\n"

    done = await shop.call("import_csv", kind="members", text=text)

    assert changes(done) == [[("units_per_sale", 1, 2)], [("units_per_sale", None, 6), ("sku", None, "HONEY-6")]]
