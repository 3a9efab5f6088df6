"""How many of a variant can be sold, and why."""

from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop

KIT = {"variant_gid": SIX_PACK, "units_per_sale": 6}


async def test_an_explanation_of_one_pool_has_stock_holds_buffer_and_units(shop: Shop) -> None:
    pool = await shop.create_pool(50, name="Jars", members=[KIT], buffer=2)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=4)

    explained = await shop.call("explain_availability", variant_gid=SIX_PACK)

    assert explained == {
        "variant_gid": SIX_PACK,
        "effective": 7,
        "explanation": "7 can be sold: Jars has 44 units available and one sale takes 6.",
        "pools": [
            {
                "pool_id": pool["id"],
                "name": "Jars",
                "unit": "units",
                "status": "active",
                "on_hand": 50,
                "held": 4,
                "buffer": 2,
                "units_per_sale": 6,
                "allows": 7,
                "formula": "floor(max(0, 50 - 4 - 2) / 6) = 7",
                "is_limiting": True,
            }
        ],
    }


async def test_an_explained_kit_lists_its_pools_and_marks_the_one_that_limits(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars", members=[KIT])
    await shop.create_pool(3, name="Boxes", unit="boxes", members=[{**KIT, "units_per_sale": 1}])

    explained = await shop.call("explain_availability", variant_gid=SIX_PACK)

    assert {limit["name"]: (limit["allows"], limit["is_limiting"]) for limit in explained["pools"]} == {
        "Jars": (8, False),
        "Boxes": (3, True),
    }
    assert (explained["effective"], explained["explanation"]) == (
        3,
        "3 can be sold: Boxes has 3 boxes available and one sale takes 1.",
    )


async def test_an_explained_kit_marks_one_of_two_equal_pools_as_get_availability_does(shop: Shop) -> None:
    await shop.create_pool(18, members=[KIT])
    await shop.create_pool(3, members=[{**KIT, "units_per_sale": 1}])

    explained = await shop.call("explain_availability", variant_gid=SIX_PACK)
    short = await shop.call("get_availability", variant_gids=[SIX_PACK])

    assert [limit["pool_id"] for limit in explained["pools"] if limit["is_limiting"]] == [
        short["limiting_pool"][SIX_PACK]
    ]


async def test_a_pool_in_deficit_allows_no_sale(shop: Shop) -> None:
    pool = await shop.create_pool(0, members=[KIT], allow_negative=True)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-8)

    explained = await shop.call("explain_availability", variant_gid=SIX_PACK)

    assert (explained["effective"], explained["pools"][0]["formula"]) == (0, "floor(max(0, -8 - 0 - 0) / 6) = 0")


async def test_an_explanation_names_an_inactive_pool_as_the_reason(shop: Shop) -> None:
    await shop.create_pool(50, name="Jars", members=[KIT])
    boxes = await shop.create_pool(3, name="Boxes", members=[{**KIT, "units_per_sale": 1}])

    for tool, status in (("pause_pool", "paused"), ("archive_pool", "archived")):
        await shop.call(tool, pool_id=boxes["id"])
        explained = await shop.call("explain_availability", variant_gid=SIX_PACK)
        assert (explained["effective"], explained["explanation"]) == (
            None,
            f"Storefronts are not told of it: Boxes is {status}.",
        )


async def test_an_explanation_has_the_same_quantity_as_the_storefront(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    for delta in (-3, -7, 1, -30, -11):
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=delta)
        for gid, quantity in (await shop.read_storefront()).json()["variants"].items():
            assert (await shop.call("explain_availability", variant_gid=gid))["effective"] == quantity


async def test_a_variant_without_a_pool_has_no_explanation(shop: Shop, inventory: Inventory) -> None:
    await (await inventory.create_shop()).create_golden_pool()

    refusal = await shop.refusal("explain_availability", variant_gid=SINGLE)

    assert (refusal["code"], "link_variants" in refusal["hint"]) == ("not_found", True)
