"""The page of spreadsheets: exports as CSV, and imports after a preview."""

import csv
import io

import httpx2
import pytest

from holdfast.inventory.console.pools.spreadsheets_page import MAX_FILE_BYTES
from holdfast.inventory.spreadsheets.model import MAX_ROWS
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SIX_PACK
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import (
    SPREADSHEETS_PATH,
    MerchantAtPlatform,
    hidden_fields,
    open_merchant_at_platform,
    upload_spreadsheet,
)
from tests.inventory.console.merchant_scene import SAME_SITE


async def send(merchant: MerchantAtPlatform, text: str, **fields: str) -> httpx2.Response:
    """Send the form with rows that were pasted."""
    return await merchant.send(SPREADSHEETS_PATH, **{"kind": "pools", "mode": "set", "text": text, **fields})


async def test_an_import_is_previewed_and_then_done(merchant: MerchantAtPlatform) -> None:
    jars = (await merchant.shop.create_pool(50, name="Jars"))["id"]
    text = 'name,unit,quantity\nJars,,44\n"<b>Lids</b>",pcs,9'

    preview = await send(merchant, text, reason="Counted")

    assert "Import 2 rows? 1 new row · 1 changed row" in main_text(preview)
    assert "Line 2 Jars changed On hand: 50 → 44 Line 3 <b>Lids</b> new Counted in: pcs · On hand: 9" in main_text(
        preview
    )
    assert "<b>Lids" not in preview.text
    assert await merchant.shop.on_hand(jars) == 50
    form = {**hidden_fields(preview), "text": text, "sure": "yes"}
    done = [
        await merchant.http.post(merchant.address_of(SPREADSHEETS_PATH), data=form, headers=SAME_SITE) for _ in range(2)
    ]
    head = "Spreadsheets Imported 1 new row · 1 changed row"
    assert [main_text(page).startswith(head) for page in done] == [True, True]
    entries = await merchant.shop.entries(kinds=["import"])
    assert [(entry["delta"], entry["reason"], entry["actor"]) for entry in entries] == [
        (9, "Counted", "staff"),
        (-6, "Counted", "staff"),
    ]


async def test_the_columns_of_a_file_tell_what_it_lists(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(50, name="Jars")

    packs = await send(merchant, f"pool;variant_gid;units_per_sale\nJars;{SIX_PACK};5\n", kind="")
    pools = await send(merchant, "name;quantity\nJars;40\n", kind="")

    assert "1 new row" in main_text(packs)
    assert "On hand: 50 → 40" in main_text(pools)


@pytest.mark.parametrize(
    ("language", "change"), [("en", "On hand: 50,000 → 44,000"), ("de", "Vorhanden: 50.000 → 44.000")]
)
async def test_the_preview_shows_the_numbers_that_are_written(
    platform_source: PlatformSource, language: str, change: str
) -> None:
    async with open_merchant_at_platform(platform_source, language) as merchant:
        await merchant.shop.create_pool(50_000, name="Jars")

        preview = await send(merchant, "name,quantity\nJars,-6000\n", mode="adjust")

        assert change in main_text(preview)


async def test_a_downloaded_file_can_be_imported_unchanged(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(50, name="Jars", members=PACKS)

    pools = await merchant.get(f"{SPREADSHEETS_PATH}/pools.csv")
    members = await merchant.get(f"{SPREADSHEETS_PATH}/members.csv")

    assert pools.headers["content-type"] == "text/csv; charset=utf-8"
    assert pools.headers["content-disposition"] == 'attachment; filename="pools.csv"'
    assert "1 row without a change" in main_text(await upload_spreadsheet(merchant, pools.content))
    assert "3 rows without a change" in main_text(await upload_spreadsheet(merchant, members.content, "members"))
    changed = await upload_spreadsheet(
        merchant, members.content.replace(f"{SIX_PACK},6".encode(), f"{SIX_PACK},5".encode()), "members"
    )
    assert f"{SIX_PACK} in Jars changed" in main_text(changed)


@pytest.mark.parametrize(("language", "separator"), [("en", ","), ("de", ";")])
async def test_files_have_the_separator_of_their_language_and_are_read_back_exactly(
    platform_source: PlatformSource, language: str, separator: str
) -> None:
    """Before, German files had commas: one column in a German spreadsheet program."""
    unchanged = {"en": "1 row without a change", "de": "1 Zeile ohne Änderung"}[language]
    async with open_merchant_at_platform(platform_source, language) as merchant:
        await merchant.shop.create_pool(
            50, name="Gläser; groß, rund", members=[{**PACKS[1], "sku": "=6", "title": "a,=b;-c"}]
        )
        for kind, columns in (("pools", 7), ("members", 6), ("history", 5)):
            file = await merchant.get(f"{SPREADSHEETS_PATH}/{kind}.csv")

            text = file.content.decode()
            assert text.startswith("\ufeff")
            head, row = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator)
            assert len(head) == len(row) >= columns
            if kind != "history":
                assert unchanged in main_text(await upload_spreadsheet(merchant, file.content, kind))


async def test_a_long_list_is_one_file_with_the_columns_once(merchant: MerchantAtPlatform) -> None:
    rows = "".join(f"Pool {number}\n" for number in range(MAX_ROWS))
    await merchant.shop.call("import_csv", kind="pools", text=f"name\n{rows}", dry_run=False)
    await merchant.shop.create_pool(50, name="Jars")

    file = await merchant.get(f"{SPREADSHEETS_PATH}/pools.csv")

    lines = file.text.removeprefix("\ufeff").splitlines()
    assert (len(lines), sum(line.startswith("name,") for line in lines)) == (MAX_ROWS + 2, 1)
    assert lines[-1].startswith("Jars,units,50,")
    history = await merchant.get(f"{SPREADSHEETS_PATH}/history.csv")
    assert len(history.text.splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name,quantity\nJars,many\nLids,-1\n", "line 2: quantity"),
        ("", "choose a file of at most 400 kB, or paste the rows"),
        ("colour\nred\n", "Nothing was imported."),
    ],
)
async def test_every_row_that_does_not_fit_is_named_and_the_text_stays(
    merchant: MerchantAtPlatform, text: str, why: str
) -> None:
    page = await send(merchant, text)

    assert page.status_code == 422
    assert why in main_text(page)
    assert text.strip() in page.text
    assert await merchant.shop.call("list_pools") == {"pools": [], "next_cursor": None}


async def test_a_sheet_that_takes_more_than_a_pool_has_is_refused(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(5, name="Jars")

    page = await send(merchant, "name,quantity\nJars,-6\n", mode="adjust")

    assert page.status_code == 409
    assert "it would take more of a pool than there is" in main_text(page)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
async def test_files_are_read_in_the_encodings_and_separators_of_spreadsheet_programs(
    merchant: MerchantAtPlatform, encoding: str, separator: str
) -> None:
    text = "name,unit,quantity\r\nGläser für 5 €,Stück,9\r\n".replace(",", separator)

    preview = await upload_spreadsheet(merchant, text.encode(encoding))

    assert "Line 2 Gläser für 5 € new" in main_text(preview)


async def test_variants_can_be_imported_by_the_skus_of_the_platform(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(50, name="Jars")

    preview = await upload_spreadsheet(merchant, b"pool;sku;units_per_sale\nJars;HONEY-6;6\n", "members")

    assert "Line 2 HONEY-6 in Jars new" in main_text(preview)


async def test_a_file_that_is_too_large_or_no_text_is_refused_and_the_form_stays(merchant: MerchantAtPlatform) -> None:
    large = await upload_spreadsheet(merchant, b"name\n" + b"x" * MAX_FILE_BYTES)
    others = [await upload_spreadsheet(merchant, content) for content in (b"PK\x03\x04\x00", b"name\n\x81\x01\n")]

    assert [page.status_code for page in (large, *others)] == [422, 422, 422]
    assert "choose a file of at most 400 kB" in main_text(large)
    for page in others:
        assert "the file cannot be read as text: save the sheet as “CSV UTF-8”, and choose that file" in main_text(page)
        assert "See what would change" in main_text(page)
    assert (await merchant.get(f"{SPREADSHEETS_PATH}/keys.csv")).status_code == 404


async def test_an_import_or_export_reaches_no_pools_of_another_shop(platform_source: PlatformSource) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        other = await merchant.inventory.create_shop()
        theirs = await other.create_pool(7, name="Jars", members=PACKS)

        response = await send(merchant, f"pool,variant_gid,units_per_sale\nJars,{SIX_PACK},5\n", kind="members")
        files = [await merchant.get(f"{SPREADSHEETS_PATH}/{kind}.csv") for kind in ("pools", "members", "history")]

        assert response.status_code == 422
        assert "Nichts wurde importiert." in main_text(response)
        assert [len(file.text.splitlines()) for file in files] == [1, 1, 1]
        assert (await other.call("get_pool", pool_id=theirs["id"]))["on_hand"] == 7
