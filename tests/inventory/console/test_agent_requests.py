"""An agent of a shop that asks the merchant first: its change of stock waits, and happens once when it is approved."""

import re

from holdfast.accounts.agents.limits import SetLimit
from holdfast.inventory.api import OPERATIONS
from holdfast.inventory.shops.operations import SHOP_LIMITS
from holdfast.inventory.stock import operations as stock
from holdfast.inventory.stock.model import SetPoolQuantity
from holdfast.kit.contract.caller import system
from holdfast.kit.operations.operation import Batch, Call
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import Shop, run_sql
from tests.inventory.console.merchant_scene import Admin

TEA = "gid://shopify/ProductVariant/77"
JAR = "gid://shopify/ProductVariant/78"


async def ask_first(admin: Admin, shop: Shop, daily_limit: int | None = None) -> None:
    """Let the key of the shop ask the merchant first."""
    database = admin.inventory.database
    [(key_id,)] = await run_sql(database, "select id from api_keys where shop_id = %(id)s and active", id=shop.id)
    command = SetLimit(key_id=key_id, asks_first=True, daily_limit=daily_limit)
    await database.transact(lambda tx: SHOP_LIMITS.store_limit(tx, system(shop.id), command))


def seen_version(text: str) -> str:
    match = re.search('name="seen" value="([^"]*)"', text)
    assert match, text
    return match[1]


async def test_a_merchant_sees_what_the_agent_wants_and_what_is_there_now(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(15, name="Tea")
    await ask_first(admin, own_shop)

    waiting = await own_shop.refusal("set_pool_quantity", pool_id=pool["id"], quantity=12)

    assert (waiting["code"], waiting["status"]) == ("approval_required", "waiting")
    assert await own_shop.on_hand(pool["id"]) == 15
    path = f"/console/agents/requests/{waiting['request_id']}"
    page = await admin.get(path)
    assert "An agent wants to set Tea to 12 units . Now: 15 units ." in main_text(page)
    assert (await admin.send(path, do="approve", seen=seen_version(page.text))).status_code == 303
    assert await own_shop.on_hand(pool["id"]) == 12
    answer = await own_shop.call("set_pool_quantity", pool_id=pool["id"], quantity=12)
    assert answer["entries"][0]["delta"] == -3


async def test_stock_that_has_moved_since_is_shown_again_and_not_changed(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(15, name="Tea")
    await ask_first(admin, own_shop)
    waiting = await own_shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=5)
    path = f"/console/agents/requests/{waiting['request_id']}"
    before = seen_version((await admin.get(path)).text)
    command = SetPoolQuantity(pool_id=pool["id"], quantity=9)
    batch = Batch(own_shop.id, [Call(system(own_shop.id), command)], True)
    await admin.inventory.database.transact(lambda tx: stock.set(tx, batch), own_shop.id)

    refusal = await admin.send(path, do="approve", seen=before)

    assert refusal.status_code == 409
    assert "Something has changed since you looked" in main_text(refusal)
    assert "Stock: 9 → 14 units" in main_text(refusal)
    assert await own_shop.on_hand(pool["id"]) == 9


async def test_a_daily_limit_holds_for_what_is_approved(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(15, name="Tea")
    await ask_first(admin, own_shop, daily_limit=3)
    waiting = await own_shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=5)
    path = f"/console/agents/requests/{waiting['request_id']}"

    refusal = await admin.send(path, do="approve", seen=seen_version((await admin.get(path)).text))

    assert refusal.status_code == 409
    assert "This agent may move 3 units a day" in main_text(refusal)
    assert await own_shop.on_hand(pool["id"]) == 15


async def test_a_dry_run_waits_for_no_merchant(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(15, name="Tea")
    await ask_first(admin, own_shop)

    answer = await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=5, dry_run=True)

    assert answer["dry_run"]
    assert await run_sql(admin.inventory.database, "select count(*) from agent_requests") == [(0,)]


async def test_every_tool_that_changes_something_waits_and_is_described_in_words(admin: Admin, own_shop: Shop) -> None:
    tea, honey = await own_shop.create_pool(15, name="Tea"), await own_shop.create_pool(5, name="Honey")
    members = [{"variant_gid": TEA, "units_per_sale": 2, "title": "Tea, six"}]
    await own_shop.call("link_variants", pool_id=tea["id"], members=members)
    change = await own_shop.call("hold_quantity", pool_id=tea["id"], quantity=1)
    await ask_first(admin, own_shop)
    pool = {"pool_id": tea["id"]}
    calls = {
        "create_pool": ({"name": "Jam", "quantity": 3}, "wants to make the pool Jam with 3 units"),
        "update_pool": ({**pool, "buffer": 2}, "wants to change the pool Tea . Safety stock 0 → 2"),
        "pause_pool": (pool, "wants to pause Tea"),
        "resume_pool": (pool, "wants to resume Tea"),
        "archive_pool": (pool, "wants to archive Tea"),
        "restore_pool": (pool, "wants to restore Tea"),
        "link_variants": (
            {**pool, "members": [{"variant_gid": JAR, "units_per_sale": 1}]},
            "wants to add 1 variant to Tea",
        ),
        "update_member": (
            {**pool, "variant_gid": TEA, "units_per_sale": 3},
            "a sale of Tea, six to take 3 units of Tea",
        ),
        "unlink_variants": ({**pool, "variant_gids": [TEA]}, "wants to remove 1 variant from Tea"),
        "set_pool_quantity": ({**pool, "quantity": 12}, "wants to set Tea to 12 units"),
        "adjust_pool_quantity": ({**pool, "delta": -2}, "wants to take 2 units out of Tea"),
        "bulk_adjust": ({"items": [{**pool, "delta": 1}]}, "change the stock of 1 pool. Tea 15 → 16"),
        "transfer_quantity": (
            {"from_pool_id": tea["id"], "to_pool_id": honey["id"], "quantity": 4},
            "from Tea to Honey . Now in Tea : 15 units . On hold: 1 unit . Now in Honey : 5 units",
        ),
        "hold_quantity": ({"variant_gid": TEA, "quantity": 1}, "wants to put 1 \u00d7 Tea, six on hold"),
        "release_hold": ({"hold_id": change["hold"]["id"]}, "wants to end a hold on Tea"),
        "record_sale": ({"variant_gid": TEA, "quantity": 2}, "wants to record a sale of 2 \u00d7 Tea, six . Now: 15"),
        "revert_entry": ({"entry_id": change["entries"][0]["id"]}, "wants to undo a change of Tea"),
        "reconcile": ({**pool, "dry_run": False}, "wants to match Tea with your shop"),
        "resync": (pool, "wants to set the numbers of Tea in your shop again"),
        "import_csv": (
            {"kind": "pools", "text": "name,quantity\nJam,3\n", "dry_run": False},
            "import a spreadsheet with 1 row",
        ),
        "set_webhook": (
            {"url": "https://shop.example/hooks"},
            "wants to have what happens in your shop sent to https://shop.example/hooks",
        ),
    }

    for tool, (arguments, _) in calls.items():
        waiting = await own_shop.refusal(tool, **arguments)
        assert waiting["code"] == "approval_required", (tool, waiting)

    assert {*calls} == {operation.name for operation in OPERATIONS if not operation.mode.reads}
    page = main_text(await admin.get("/console/agents"))
    assert f"{len(calls)} requests wait for you" in page
    for tool, (_, words) in calls.items():
        assert words in page, (tool, page)
