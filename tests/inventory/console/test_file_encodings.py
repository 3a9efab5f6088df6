"""Files in old encodings: the page shows how it has read them, and how else they could be read."""

import html
import re
from base64 import b64encode

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.inventory.console.pools.file_text import ENCODINGS, text_in_encoding, text_of
from tests.helpers.form_browser import main_text
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import (
    SPREADSHEETS_PATH,
    MerchantAtPlatform,
    hidden_fields,
    open_merchant_at_platform,
    upload_spreadsheet,
)
from tests.inventory.console.merchant_scene import SAME_SITE, hidden_field

SHEETS = {
    "mac_roman": "Gläser für 5 €",
    "cp850": "Gläser, groß und schön",
    "cp1252": "Gläser für 5 €",
    "cp1250": "Słoiki, żółty miód",
    "cp1251": "Банки для мёда",
    "gb18030": "蜂蜜罐头",
    "cp932": "はちみつの瓶",
    "koi8_r": "Банки для мёда",
    "cp1253": "Βάζα με μέλι",
}
"""Names of pools in the encodings in which people save them."""


def file_of(name: str, codec: str) -> bytes:
    return f'name;quantity\r\n"{name}";9\r\nLids;4\r\n'.encode(codec)


def readings(page: httpx2.Response) -> dict[str, str]:
    """The readings that can be chosen, by encoding."""
    radios = re.findall(r'name="encoding" value="([^"]*)".*?<bdi>(.*?)</bdi>', page.text, re.DOTALL)
    return {codec: html.unescape(words) for codec, words in radios}


async def read_as(merchant: MerchantAtPlatform, page: httpx2.Response, codec: str) -> httpx2.Response:
    """Choose another reading."""
    form = page.text.rpartition("<form")[2]
    inputs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
    fields = {html.unescape(name): html.unescape(value) for name, value in inputs}
    return await merchant.http.post(
        merchant.address_of(SPREADSHEETS_PATH), data={**fields, "encoding": codec}, headers=SAME_SITE
    )


@pytest.mark.parametrize(("codec", "name"), SHEETS.items(), ids=SHEETS)
async def test_a_file_in_an_old_encoding_is_read_right_or_the_encoding_can_be_chosen(
    merchant: MerchantAtPlatform, codec: str, name: str
) -> None:
    """Before, everything that was not UTF-8 was taken for Windows-1252 without a word."""
    preview = await upload_spreadsheet(merchant, file_of(name, codec))

    assert "The file is not in UTF-8, and does not name its encoding." in main_text(preview)
    if f"Line 2 {name} new" not in main_text(preview):
        assert all(cell.strip() in readings(preview)[codec] for cell in name.split(","))
        preview = await read_as(merchant, preview, codec)
    assert f"Line 2 {name} new" in main_text(preview)
    form = {**hidden_fields(preview), "text": f'name,quantity\n"{name}",9', "sure": "yes"}
    assert "Imported" in main_text(
        await merchant.http.post(merchant.address_of(SPREADSHEETS_PATH), data=form, headers=SAME_SITE)
    )
    assert [pool["name"] for pool in (await merchant.shop.call("list_pools"))["pools"]] == [name]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "ascii"])
async def test_a_file_in_unicode_needs_no_choice_of_encoding(merchant: MerchantAtPlatform, codec: str) -> None:
    preview = await upload_spreadsheet(merchant, file_of("Jars" if codec == "ascii" else "Gläser 蜂蜜", codec))

    assert "does not name its encoding" not in main_text(preview)
    assert readings(preview) == {}


async def test_rows_that_are_refused_can_be_read_in_another_encoding_too(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(50, name="Gläser")
    text = "pool;sku;units_per_sale\nGläser;HONEY-6;6\n"

    refusal = await read_as(merchant, await upload_spreadsheet(merchant, text.encode("mac_roman"), "members"), "cp1251")
    assert refusal.status_code == 422
    assert "Read as Windows-1251: GlЉser" in main_text(refusal)
    assert readings(refusal)["mac_roman"] == "Gläser"

    assert "Line 2 HONEY-6 in Gläser new" in main_text(await read_as(merchant, refusal, "mac_roman"))


async def test_the_question_about_the_encoding_is_in_german_too(platform_source: PlatformSource) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        preview = await upload_spreadsheet(merchant, file_of("Gläser", "cp850"))

        assert "Die Datei ist nicht in UTF-8" in main_text(preview)
        assert "Die Wörter stimmen: Importieren" in main_text(preview)


@pytest.mark.parametrize(
    ("content", "codec"), [("%%%", "cp850"), ("", "rot13"), (b64encode(b"name\n\x98").decode(), "cp1251")]
)
async def test_a_form_with_a_made_up_file_or_encoding_is_refused(
    merchant: MerchantAtPlatform, content: str, codec: str
) -> None:
    token = hidden_field(await merchant.get(SPREADSHEETS_PATH), "token")
    fields = {"token": token, "kind": "pools", "mode": "set", "content": content or "eA==", "encoding": codec}

    page = await merchant.http.post(merchant.address_of(SPREADSHEETS_PATH), data=fields, headers=SAME_SITE)

    assert page.status_code == 422
    assert "the file cannot be read as text" in main_text(page)


@given(st.sampled_from([*ENCODINGS]), st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1))
@example("gb18030", "蜂蜜")
def test_every_file_in_an_old_encoding_causes_a_question_and_can_be_read_right(codec: str, text: str) -> None:
    content = text.encode(codec, "ignore")
    try:
        content.decode()
    except UnicodeDecodeError:
        read = text_of(content)
        assert read.text == content.decode(read.readings[0].codec)
        assert text_in_encoding(read.content, codec).text == content.decode(codec)
        assert text_in_encoding(read.content, codec).readings[0].codec == codec
        assert len({reading.codec for reading in read.readings}) == len(read.readings)
