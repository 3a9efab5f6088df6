"""Creating a pool, with its first quantity and its variants."""

import asyncio
from typing import Any

import pytest

from tests.helpers.cases import in_turn
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop, ToolRefusal


async def test_a_pool_can_be_created_with_a_name_only(shop: Shop) -> None:
    change = await shop.call("create_pool", name="Honey jars")

    pool = change["pool"]
    assert {name: pool[name] for name in ("name", "unit", "on_hand", "held", "buffer", "low_stock_at")} == {
        "name": "Honey jars",
        "unit": "units",
        "on_hand": 0,
        "held": 0,
        "buffer": 0,
        "low_stock_at": None,
    }
    assert (pool["status"], pool["allow_negative"], pool["members"]) == ("active", False, [])
    assert change["version"] == pool["version"]
    assert await shop.entries() == []


async def test_a_pool_can_be_created_with_all_its_fields(shop: Shop) -> None:
    fields: dict[str, Any] = {
        "name": "Honey",
        "unit": "g",
        "quantity": 5_000,
        "buffer": 250,
        "low_stock_at": 1_000,
        "allow_negative": True,
    }
    members = [{"variant_gid": SINGLE, "units_per_sale": 500, "sku": "HONEY-500", "title": "Honey, 500 g"}]

    change = await shop.call("create_pool", **fields, members=members)

    pool = change["pool"]
    assert {name: pool[name] for name in fields if name != "quantity"} == {
        name: value for name, value in fields.items() if name != "quantity"
    }
    assert (pool["on_hand"], pool["available"]) == (5_000, 4_750)
    assert pool["members"] == [{**members[0], "effective": 9}]
    assert change["affected"] == [{"variant_gid": SINGLE, "before": None, "after": 9}]


async def test_the_first_quantity_of_a_pool_is_its_first_entry(shop: Shop) -> None:
    pool = (await shop.call("create_pool", name="Honey jars", quantity=50, reason="Bought."))["pool"]

    (entry,) = await shop.entries(pool_id=pool["id"])
    assert (entry["kind"], entry["delta"], entry["balance_after"]) == ("set", 50, 50)
    assert (entry["source"], entry["reason"], entry["actor"]) == ("create_pool", "Bought.", "agent")


async def test_the_variants_of_a_new_pool_are_in_the_storefront_at_once(shop: Shop) -> None:
    assert (await shop.read_storefront()).json()["variants"] == {}

    await shop.create_golden_pool()

    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4}


@pytest.mark.parametrize("name", ["Honey jars", "HONEY JARS", "honey jars"])
async def test_a_name_that_differs_in_case_only_is_taken(shop: Shop, inventory: Inventory, name: str) -> None:
    await shop.create_golden_pool()
    before = await inventory.all_rows()

    refusal = await shop.refusal("create_pool", name=name)

    assert refusal["code"] == "name_taken"
    assert await inventory.all_rows() == before


@pytest.mark.parametrize(("first", "second"), [("Äpfel", "äpfel"), ("ÉCLAIRS", "Éclairs"), ("ΜΕΛΙ", "μελι")])
async def test_names_of_pools_are_compared_without_case_in_every_alphabet(shop: Shop, first: str, second: str) -> None:
    await shop.call("create_pool", name=first)

    assert (await shop.refusal("create_pool", name=second))["code"] == "name_taken"


async def test_the_name_of_an_archived_pool_is_free_again(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("archive_pool", pool_id=pool["id"])

    assert (await shop.create_golden_pool())["id"] != pool["id"]


async def test_a_name_of_a_pool_may_be_used_by_another_shop_too(shop: Shop, inventory: Inventory) -> None:
    await shop.create_golden_pool()

    assert (await (await inventory.create_shop()).create_golden_pool())["name"] == "Honey jars"


async def test_concurrent_pools_with_one_name_create_only_one(shop: Shop) -> None:
    answers = await asyncio.gather(
        *(shop.call("create_pool", name="Honey", quantity=1) for _ in range(6)), return_exceptions=True
    )

    assert [answer.code for answer in answers if isinstance(answer, ToolRefusal)] == ["name_taken"] * 5
    assert len((await shop.call("list_pools"))["pools"]) == len(await shop.entries()) == 1


@in_turn(
    ("fields", "blamed"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "  \t"}, "name"),
        ({"name": "n" * 101}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "two\rlines"}, "name"),
        ({"name": "tab\tbed"}, "name"),
        ({"name": "Honey", "unit": " "}, "unit"),
        ({"name": "Honey", "quantity": -1}, "quantity"),
        ({"name": "Honey", "quantity": 10**12 + 1}, "quantity"),
        ({"name": "Honey", "buffer": -1}, "buffer"),
        ({"name": "Honey", "low_stock_at": 1.5}, "low_stock_at"),
        ({"name": "Honey", "members": [{"variant_gid": SINGLE}]}, "members"),
        ({"name": "Honey", "members": [{"variant_gid": SINGLE, "units_per_sale": 0}]}, "members"),
        ({"name": "Honey", "members": [{"variant_gid": "1001", "units_per_sale": 1}]}, "members"),
        ({"name": "Honey", "members": [{"variant_gid": SINGLE + "\n", "units_per_sale": 1}]}, "members"),
        ({"name": "Honey", "members": [*PACKS, PACKS[0]]}, "members"),
    ],
)
async def test_an_invalid_field_of_a_new_pool_is_named_and_creates_no_pool(
    shop: Shop, inventory: Inventory, fields: dict[str, Any], blamed: str
) -> None:
    before = await inventory.all_rows()

    refusal = await shop.refusal("create_pool", **fields)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", [blamed])
    assert await inventory.all_rows() == before


async def test_a_first_quantity_needs_the_scope_to_write_quantities(inventory: Inventory) -> None:
    shop = await inventory.create_shop("write_pools", "read_pools")

    response = await shop.send_call("create_pool", {"name": "Honey", "quantity": 1})

    assert response.status_code == 403
    assert 'error="insufficient_scope", scope="write_pools write_inventory"' in response.headers["www-authenticate"]
    assert (await shop.call("list_pools"))["pools"] == []
    assert (await shop.call("create_pool", name="Honey", quantity=0))["pool"]["on_hand"] == 0


async def test_a_name_of_a_pool_is_stored_without_the_spaces_around_it(shop: Shop) -> None:
    """Two pools whose names look the same could not be told apart, nor could a spreadsheet."""
    await shop.call("create_pool", name="Honey jars")

    assert (await shop.refusal("create_pool", name=" Honey jars "))["code"] in {"name_taken", "validation_failed"}
