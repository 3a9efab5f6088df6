"""A pool that falls to its limit sends one mail, and the next only after it was above the limit."""

import re
from typing import Any

import pytest

from holdfast.inventory.mails import sending
from holdfast.inventory.mails.writing import write
from holdfast.kit.mail.message import Envelope
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import Inventory, Shop
from tests.inventory.console.signing_in import EMAIL, Owner, add_merchant
from tests.kit.mail.posting import all_due


@pytest.fixture
async def owner(inventory: Inventory, shop: Shop) -> Owner:
    """An owner who has signed in."""
    await add_merchant(inventory, shop)
    return await Owner(inventory).sign_in()


async def low_stock_mails(inventory: Inventory) -> list[str]:
    """The mails about low stock that wait, as text; those that are not true any more are left out."""

    async def writer(batch: Any) -> list[bytes]:
        return write(batch)

    mails = [mail for mail in await all_due(inventory.database) if mail.kind != "sign_in"]
    rendered = await sending.render(writer, inventory.database, mails)
    return [envelope.content.decode() for envelope in rendered if isinstance(envelope, Envelope)]


async def count_waiting_mails(inventory: Inventory) -> int:
    [(count,)] = await inventory.sql("select count(*) from mails where kind = 'low_stock'")
    return count


async def test_a_pool_that_falls_to_its_limit_is_mailed_once(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(50, name="Honey jars", low_stock_at=12)
    counts: list[int] = []
    for delta in (-30, -8, -1, -1, +20, -20):
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=delta)
        counts.append(await count_waiting_mails(owner.inventory))

    assert counts == [0, 1, 1, 1, 1, 2]
    assert await owner.inventory.sql("select distinct recipient from mails where kind = 'low_stock'") == [(EMAIL,)]
    [mail] = await low_stock_mails(owner.inventory)  # of one thread, one mail at a time
    assert "Subject: Low stock: Honey jars, 10 units left" in mail
    assert f"This is about your shop {shop.domain}." in mail
    assert f"http://inventory.test/console/pools/{pool['id']}" in mail
    assert "10 units left that can be sold" in mail


async def test_a_merchant_is_mailed_in_the_language_of_the_last_sign_in(inventory: Inventory, shop: Shop) -> None:
    await add_merchant(inventory, shop)
    for language in ("en", "de"):
        await Owner(inventory, language).sign_in()
    pool = await shop.create_pool(50, name="Honig", low_stock_at=12)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-40)

    [mail] = await low_stock_mails(inventory)

    assert "Knapper Bestand: Honig" in mail


async def test_a_mail_about_one_unit_uses_the_singular(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(50, name="Jars", low_stock_at=1)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-49)

    [mail] = await low_stock_mails(owner.inventory)

    assert "1 unit left that can be sold" in mail


@pytest.mark.parametrize(
    ("quantity", "draw", "sentence"),
    [
        (50, 40, "At 1.4 units a day, this lasts about 7 days."),
        (21, 20, "At 0.7 units a day, this lasts about 1 day."),
        (99, 98, "At 3.5 units a day, this lasts less than a day."),
    ],
)
async def test_a_mail_says_for_how_long_the_stock_lasts(
    owner: Owner, shop: Shop, quantity: int, draw: int, sentence: str
) -> None:
    pool = await shop.create_pool(quantity, low_stock_at=12)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-draw)

    [mail] = await low_stock_mails(owner.inventory)

    text = mail.replace("=\r\n", "")
    assert sentence in text
    assert "When new goods come in, add them on the page of the pool." in text


async def test_a_mail_does_not_say_that_stock_lasts_at_a_pace_of_zero(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(13, low_stock_at=12)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)

    [mail] = await low_stock_mails(owner.inventory)

    assert "12 units left that can be sold" in mail
    assert "this lasts" not in mail


async def test_a_mail_about_stock_of_which_none_was_taken_does_not_say_for_how_long_it_lasts(
    owner: Owner, shop: Shop
) -> None:
    pool = await shop.create_pool(20, low_stock_at=12)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=10, ttl_s=600)

    [mail] = await low_stock_mails(owner.inventory)

    assert "10 units left that can be sold" in mail
    assert "this lasts" not in mail


async def test_a_hold_below_the_limit_sends_a_mail_and_a_dry_run_does_not(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(20, low_stock_at=12)

    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-9, dry_run=True)
    tried = await count_waiting_mails(owner.inventory)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=8, ttl_s=600)

    assert (tried, await count_waiting_mails(owner.inventory)) == (0, 1)


async def test_a_pool_that_recovers_before_the_mail_is_sent_is_not_mailed(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(20, low_stock_at=12)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-10)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=30)

    assert await low_stock_mails(owner.inventory) == []


async def test_a_paused_pool_or_one_without_a_limit_is_not_mailed(owner: Owner, shop: Shop) -> None:
    without, paused = await shop.create_pool(20, name="Jars"), await shop.create_pool(20, name="Lids", low_stock_at=12)
    mailed = await shop.create_pool(20, name="Honey", low_stock_at=12)
    await shop.call("pause_pool", pool_id=paused["id"])

    for pool in (without, paused, mailed):
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-10)

    [mail] = await low_stock_mails(owner.inventory)
    assert "Subject: Low stock: Honey" in mail


async def test_a_merchant_turns_the_mails_off_and_on(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(20, low_stock_at=12)
    assert "E-mail me when a pool runs low on" in main_text(await owner.get("/console/settings"))

    await owner.send("/console/settings", "/console/settings/mails", mails="off")
    assert "E-mail me when a pool runs low off" in main_text(await owner.get("/console/settings"))
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-10)
    off = await count_waiting_mails(owner.inventory)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=+10)
    await owner.send("/console/settings", "/console/settings/mails", mails="on")
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-10)

    assert (off, await count_waiting_mails(owner.inventory)) == (0, 1)


async def test_mails_about_low_stock_go_to_proved_addresses_of_the_shop_only(
    inventory: Inventory, owner: Owner, shop: Shop
) -> None:
    other = await inventory.create_shop()
    await add_merchant(inventory, other, "ben@example.com")  # never signed in

    for place in (shop, other):
        pool = await place.create_pool(20, low_stock_at=12)
        await place.call("adjust_pool_quantity", pool_id=pool["id"], delta=-10)

    recipients = await inventory.sql("select recipient from mails where kind = 'low_stock'")
    assert recipients == [(EMAIL,)]


async def test_names_in_a_german_mail_about_low_stock_are_isolated(owner: Owner, shop: Shop) -> None:
    await owner.send("/console/settings", "/console/settings/mails", mails="on")
    await owner.inventory.sql("update merchants set language = 'de'")
    pool = await shop.create_pool(20, name="<script>\u202eHonig", low_stock_at=12)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-10)

    [mail] = await low_stock_mails(owner.inventory)

    assert "Subject: Knapper Bestand:" in mail
    assert "diese E=E2=80=91Mails abschalten" in mail.partition("text/html")[2].replace("=\r\n", "")
    assert "<script>" not in mail.partition("text/html")[2]
    assert "\u202e" not in mail


async def test_one_click_in_a_mail_program_stops_the_mails_about_low_stock(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(50, low_stock_at=12)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-40)
    [mail] = await low_stock_mails(owner.inventory)
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in mail
    [stop] = re.findall("List-Unsubscribe: <(http://inventory.test/mails/[^>]*)>", mail)

    assert (await owner.inventory.http.post(stop, data={"List-Unsubscribe": "One-Click"})).status_code == 200
    stopped = await low_stock_mails(owner.inventory)
    await owner.inventory.http.post(f"{stop}/again")

    assert stopped == []
    assert len(await low_stock_mails(owner.inventory)) == 1
