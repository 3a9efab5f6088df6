"""What happens to a shop is sent to the shop's programs, signed."""

import asyncio
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from holdfast.inventory.stock import expiry
from holdfast.inventory.webhooks.messages import MESSAGES
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory
from tests.inventory.webhooks.programs import ShopPrograms


async def test_a_program_gets_a_signed_message_when_the_stock_of_a_pool_changes(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_golden_pool()
    program = await programs.add(shop, "stock.changed")

    await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)

    [message] = await program.messages()
    verified = Webhook(program.endpoint["secret"]).verify(message.body, message.headers)
    assert verified["type"] == "stock.changed"
    assert (verified["subject"], verified["number"]) == (f"pool {pool['id']}", 1)
    assert verified["data"] == {
        "pool_id": pool["id"],
        "on_hand": 44,
        "held": 0,
        "available": 44,
        "version": 3,
        "delta": -6,
        "held_delta": 0,
        "kinds": ["sale"],
        "entries": 1,
        "last_entry_id": 2,
        "variants": {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3},
    }


async def test_changes_that_are_stored_together_are_one_message_for_each_pool(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    shop = await inventory.create_shop()
    jars, lids = [(await shop.create_pool(quantity))["id"] for quantity in (50, 9)]
    program = await programs.add(shop, "stock.changed")

    lines = [{"pool_id": jars, "delta": -6}, {"pool_id": lids, "delta": 1}, {"pool_id": jars, "delta": 2}]
    await shop.call("bulk_adjust", items=lines)

    contents = await program.contents()
    assert [(subject, data["delta"], data["on_hand"]) for _, subject, data in contents] == [
        (f"pool {jars}", -4, 46),
        (f"pool {lids}", 1, 10),
    ]


async def test_calls_at_the_same_moment_lose_no_change_of_the_level(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    program = await programs.add(shop, "stock.changed")

    await asyncio.gather(*(shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1) for _ in range(20)))

    data = [message.content["data"] for message in await program.messages()]
    assert sum(message["delta"] for message in data) == -20
    assert sum(message["entries"] for message in data) == 20
    assert min(message["on_hand"] for message in data) == 30


async def test_a_pool_with_many_variants_names_none_of_them(inventory: Inventory, programs: ShopPrograms) -> None:
    shop = await inventory.create_shop()
    members = [{"variant_gid": f"gid://shopify/ProductVariant/{n}", "units_per_sale": 1} for n in range(1, 102)]
    pool = await shop.create_pool(50, members=members)
    program = await programs.add(shop, "stock.changed")

    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)

    [(_, _, data)] = await program.contents()
    assert data["variants"] is None


async def test_a_variant_that_is_not_sold_is_left_out(inventory: Inventory, programs: ShopPrograms) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_golden_pool()
    await shop.create_pool(3, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}], name="Boxes")
    boxes = (await shop.call("list_pools", query="Boxes"))["pools"][0]
    await shop.call("pause_pool", pool_id=boxes["id"])
    program = await programs.add(shop, "stock.changed")

    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)

    [(_, _, data)] = await program.contents()
    assert data["variants"] == {SINGLE: 49, TWELVE_PACK: 4}


async def test_a_pool_that_falls_to_its_limit_sends_one_message(inventory: Inventory, programs: ShopPrograms) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(8, low_stock_at=5, buffer=1)
    program = await programs.add(shop, "stock.low")

    for delta in (-1, -1, -1, 4, -4):
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=delta)

    low: dict[str, Any] = {"pool_id": pool["id"], "low_stock_at": 5}
    assert await program.contents() == [
        ("stock.low", f"pool {pool['id']}", low | {"available": 5, "version": 4}),
        ("stock.low", f"pool {pool['id']}", low | {"available": 4, "version": 7}),
    ]


async def test_a_hold_that_leaves_little_counts_as_low_stock_after_the_change(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(8, low_stock_at=5)
    program = await programs.add(shop, "stock.changed", "stock.low")

    await shop.call("hold_quantity", pool_id=pool["id"], quantity=3)

    numbered = [(message.type, message.content["number"]) for message in await program.messages()]
    assert numbered == [("stock.changed", 1), ("stock.low", 2)]


async def test_a_hold_sends_a_message_when_it_is_placed_and_when_it_is_released(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_golden_pool()
    program = await programs.add(shop, "hold.placed", "hold.ended")

    change = await shop.call("hold_quantity", variant_gid=SIX_PACK, quantity=2, reference="cart 7")
    hold = change["hold"]
    await shop.call("release_hold", hold_id=hold["id"])

    of_hold: dict[str, Any] = {
        "hold_id": hold["id"],
        "reference": "cart 7",
        "pools": [{"pool_id": pool["id"], "quantity": 12}],
    }
    placed, ended = await program.contents()
    assert placed[:2] == ("hold.placed", f"hold {hold['id']}")
    assert placed[2] == of_hold | {"expires_at": hold["expires_at"]}
    assert ended == ("hold.ended", f"hold {hold['id']}", of_hold | {"reason": "released"})


async def test_the_end_of_a_hold_says_whether_it_was_sold_or_expired(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_golden_pool()
    program = await programs.add(shop, "hold.ended")

    sold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=1))["hold"]["id"]
    await shop.call("record_sale", pool_id=pool["id"], quantity=1, hold_id=sold)
    expired = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=2))["hold"]["id"]
    await inventory.sql("update holds set expires_at = now() where id = %(id)s", id=expired)
    await expiry.expire(inventory.database)

    contents = await program.contents()
    assert {data["hold_id"]: data["reason"] for _, _, data in contents} == {sold: "sold", expired: "expired"}


async def test_a_new_key_tells_programs_that_the_old_one_was_revoked(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    shop = await inventory.create_shop()
    program = await programs.add(shop, "key.revoked")
    [(id,)] = await inventory.sql("select id from api_keys where shop_id = %(id)s and active", id=shop.id)

    await inventory.regenerate_key(shop, "read_pools")

    scopes = ["read_inventory", "write_inventory", "read_pools", "write_pools"]
    assert await program.contents() == [("key.revoked", f"key {id}", {"key_id": id, "scopes": scopes})]


@pytest.mark.parametrize("type", ["stock.changed", "stock.low", "hold.placed", "hold.ended", "key.revoked"])
async def test_a_program_gets_only_the_types_that_its_endpoint_names(
    inventory: Inventory, programs: ShopPrograms, type: str
) -> None:
    shop = await inventory.create_shop()
    program = await programs.add(shop, type)
    pool = await shop.create_pool(8, low_stock_at=7, members=PACKS)

    held = await shop.call("hold_quantity", pool_id=pool["id"], quantity=1)
    await shop.call("release_hold", hold_id=held["hold"]["id"])
    await inventory.regenerate_key(shop, "read_pools")

    assert {message.type for message in await program.messages()} == {type}


async def test_an_example_has_the_members_of_its_message(inventory: Inventory, programs: ShopPrograms) -> None:
    shop = await inventory.create_shop()
    program = await programs.add(shop)
    pool = await shop.create_pool(8, low_stock_at=7)
    held = await shop.call("hold_quantity", pool_id=pool["id"], quantity=1)
    await shop.call("release_hold", hold_id=held["hold"]["id"])
    await inventory.regenerate_key(shop, "read_pools")

    sent = {message.type: {*message.content["data"]} for message in await program.messages()}

    examples = {message.name: {*message.example.__struct_fields__} for message in MESSAGES}
    assert sent == {name: examples[name] for name in sent}
    assert examples.keys() - sent.keys() == {"reconcile.drift_found", "app.connected"}


async def test_a_shop_without_an_endpoint_stores_no_messages(inventory: Inventory, programs: ShopPrograms) -> None:
    ada, ben = await inventory.create_shop(), await inventory.create_shop()
    await programs.add(ada, "stock.changed")

    await ben.create_pool(8, low_stock_at=9)

    assert await inventory.sql("select type from webhook_messages") == []


async def test_a_shop_never_gets_the_messages_of_another(inventory: Inventory, programs: ShopPrograms) -> None:
    ada, ben = await inventory.create_shop(), await inventory.create_shop()
    of_ada, of_ben = await programs.add(ada, "stock.changed"), await programs.add(ben, "stock.changed")

    pool = await ben.create_pool(8)

    assert [subject for _, subject, _ in await of_ben.contents()] == [f"pool {pool['id']}"]
    assert await of_ada.contents() == []


async def test_endpoints_and_their_messages_are_deleted_with_their_shop(
    inventory: Inventory, programs: ShopPrograms
) -> None:
    ada, ben = await inventory.create_shop(), await inventory.create_shop()
    for shop in (ada, ben):
        await programs.add(shop, "stock.changed")
        await shop.create_pool(8)
    program = await programs.add(ada)
    await program.messages()
    await inventory.sql(
        "insert into installs (shop_id, scopes, uninstalled_at, redacted_at) values (%(id)s, '{}', now(), now())",
        id=ada.id,
    )

    while (await inventory.sql("select delete_of_shop(%(id)s, 5000)", id=ada.id))[0][0]:
        pass

    for table in ("webhook_endpoints", "webhook_messages"):
        assert await inventory.sql(f"select distinct tenant_id from {table}") == [(ben.id,)]
    for table in ("webhook_subjects", "webhook_deliveries", "webhook_attempts"):
        assert await inventory.sql(f"select count(*) from {table}") == [(1,)], table
