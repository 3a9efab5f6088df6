"""The history in people's words: the actor, the change, the variants and the order."""

import pytest

from holdfast.inventory.stock import expiry
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, Shop
from tests.inventory.console.merchant_scene import Admin
from tests.inventory.orders.stories import PlatformOrder, deliver_orders

pytestmark = pytest.mark.usefixtures("own_inventory")  # It changes the schema.

NAMED = [{**PACKS[0], "title": "Jar"}, {**PACKS[1], "title": "6-pack"}]


async def history(admin: Admin, pool: dict[str, int], language: str = "en") -> str:
    return main_text(await admin.get(f"/console/pools/{pool['id']}/history?lang={language}"))


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "An agent sold 12 units : 2 \N{MULTIPLICATION SIGN} 6-pack · then 38 on hand"),
        ("de", "Ein Agent hat 12 Einheiten verkauft: 2 \N{MULTIPLICATION SIGN}"),
    ],
)
async def test_a_sale_by_an_agent_is_shown_as_a_sale(
    admin: Admin, own_shop: Shop, language: str, sentence: str
) -> None:
    pool = await own_shop.create_pool(50, members=NAMED)
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)

    assert sentence in await history(admin, pool, language)


async def test_a_sale_in_the_history_is_counted_in_the_units_of_its_time(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=NAMED)
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
    # The link began in this second; now it was changed afterwards.
    await admin.inventory.sql("update links set since = since - interval '1 day'")
    await admin.inventory.sql("alter table ledger disable trigger user")
    await admin.inventory.sql("update ledger set created_at = created_at - interval '1 hour'")
    await own_shop.call("update_member", pool_id=pool["id"], variant_gid=SIX_PACK, units_per_sale=3)

    assert "An agent sold 6 units : 1 \N{MULTIPLICATION SIGN} 6-pack" in await history(admin, pool)


async def test_a_change_in_the_history_names_who_made_it_and_what_it_did(admin: Admin, own_shop: Shop) -> None:
    pool, other = await own_shop.create_pool(50, name="Jars"), await own_shop.create_pool(0, name="Boxes")
    id = pool["id"]
    await own_shop.call("adjust_pool_quantity", pool_id=id, delta=-1, reason="One jar was broken.")
    await own_shop.call("adjust_pool_quantity", pool_id=id, delta=2)
    await own_shop.call("adjust_pool_quantity", pool_id=id, delta=3, kind="restock")
    await own_shop.call("transfer_quantity", from_pool_id=id, to_pool_id=other["id"], quantity=4)
    await own_shop.call("set_pool_quantity", pool_id=id, quantity=49)
    hold = await own_shop.call("hold_quantity", pool_id=id, quantity=5)
    await own_shop.call("release_hold", hold_id=hold["hold"]["id"])
    await own_shop.call("import_csv", kind="pools", text="name,quantity\nJars,48\n", dry_run=False)

    text = await history(admin, pool)

    for sentence in (
        "An agent made the pool with 50 units",
        "An agent took 1 unit · then 49 on hand “ One jar was broken. ”",
        "An agent added 2 units",
        "An agent brought in 3 units",
        "An agent moved 4 units to another pool",
        "An agent counted 49 units ( \N{MINUS SIGN}1 unit )",
        "An agent put 5 units on hold · then 5 on hold",
        "An agent ended a hold of 5 units · then 0 on hold",
        "An agent imported a spreadsheet ( \N{MINUS SIGN}1 unit )",
    ):
        assert sentence in text, sentence
    assert "An agent moved 4 units here from another pool" in await history(admin, other)


async def test_the_history_is_limited_to_a_kind_and_names_the_key_and_what_time_did(
    admin: Admin, own_shop: Shop
) -> None:
    pool = await own_shop.create_pool(50, members=NAMED)
    id = pool["id"]
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)
    await own_shop.call("hold_quantity", pool_id=id, quantity=5)
    await admin.inventory.sql("update holds set expires_at = now()")
    assert await expiry.expire(admin.inventory.database) == 1

    sales = main_text(await admin.get(f"/console/pools/{id}?kind=sales"))
    holds = main_text(await admin.get(f"/console/pools/{id}/history?kind=holds"))
    transfers = main_text(await admin.get(f"/console/pools/{id}/history?kind=transfers"))

    assert "An agent sold 12 units : 2 \N{MULTIPLICATION SIGN} 6-pack · then 38 on hand" in sales
    assert f"with the key {own_shop.key[:8]}…" in sales
    assert "made the pool" not in sales
    assert "A hold of 5 units expired" in holds
    assert "sold" not in holds
    assert "Nothing of this kind has happened yet." in transfers


async def test_the_history_tells_agents_with_one_key_apart_by_the_names_of_their_programs(
    admin: Admin, own_shop: Shop
) -> None:
    pool = await own_shop.create_pool(50, members=NAMED)
    sale = {"name": "record_sale", "arguments": {"variant_gid": SINGLE, "quantity": 1}}
    message = {"jsonrpc": "2.0", "id": 1}
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "<b>Mira", "version": "1"}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "Ben", "version": "1"},
    }

    begun = await own_shop.post_message({**message, "method": "initialize", "params": about})
    session = {"mcp-session-id": begun.headers["mcp-session-id"]}
    await own_shop.post_message({**message, "method": "tools/call", "params": sale}, **session)
    era = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "record_sale"}
    await own_shop.post_message({**message, "method": "tools/call", "params": {**sale, "_meta": meta}}, **era)

    page = await admin.get(f"/console/pools/{pool['id']}/history")
    assert "Agent <b>Mira sold 1 unit" in main_text(page)
    assert "Agent <bdi>&lt;b&gt;Mira</bdi>" in page.text
    assert "Agent Ben sold 1 unit" in main_text(page)
    agents = main_text(await admin.get("/console/agents"))
    assert "Key Uses the key of your shop. Since" in agents


async def test_an_order_leads_to_the_admin_of_the_platform(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=NAMED)
    order = PlatformOrder((SINGLE, 2))
    await deliver_orders(admin.inventory, order.payload(), shop=own_shop)

    page = await admin.get(f"/console/pools/{pool['id']}")

    address = f"{admin.scene.platform.address}/{admin.domain}/admin/orders/{order.id}"
    assert f'<a href="{address}" target="_top"><bdi>#{order.id}</bdi></a>' in page.text
    assert f"Order #{order.id} took 2 units : 2 \N{MULTIPLICATION SIGN} Jar · then 48 on hand" in main_text(page)


async def test_a_custom_unit_has_its_singular(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(2, unit="jars", members=NAMED)
    other = await own_shop.create_pool(2, unit="Glas")
    await own_shop.call("record_sale", variant_gid=SINGLE, quantity=1)

    text = main_text(await admin.get(f"/console/pools/{pool['id']}"))

    assert "1 jar can be sold" in text
    assert "takes 1 jar " in text
    assert "takes 6 jars " in text
    assert "An agent sold 1 jar :" in text
    assert "An agent made the pool with 2 Gläser" in await history(admin, other)
