"""Setting levels: compared, once for each key, all or none."""

from typing import Any

import pytest

from holdfast_demo.shopify.model import gid
from holdfast_demo.shopify.shops import NewVariant, set_location
from tests.demo.shopify.stage import DOMAIN, PlatformStage


def error_codes(answer: Any) -> list[Any]:
    return [error["code"] for error in answer["userErrors"]]


async def test_a_level_is_set_and_the_change_says_by_how_much(stage: PlatformStage) -> None:
    answer = await stage.set(44, key="one", before=50)

    assert answer["userErrors"] == []
    group = answer["inventoryAdjustmentGroup"]
    assert group["reason"] == "correction"
    assert group["changes"] == [{"delta": -6, "quantityAfterChange": 44, "item": {"id": stage.item()}}]
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 44


async def test_a_level_set_twice_with_one_key_is_set_once_and_answered_alike(stage: PlatformStage) -> None:
    first = await stage.set(44, key="one", before=50)
    stage.double.count(DOMAIN, stage.variants[0].id, 30)
    again = await stage.set(44, key="one", before=50)
    other = await stage.set(43, key="one", before=30)

    assert again == first
    assert error_codes(other) == ["IDEMPOTENCY_KEY_PARAMETER_MISMATCH"]
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 30
    stage.double.clock.advance(24 * 3600 + 1)
    stage.token = stage.double.token(DOMAIN)
    assert error_codes(await stage.set(43, key="one", before=30)) == []


async def test_a_level_that_has_moved_is_not_set_and_its_key_is_used_up(stage: PlatformStage) -> None:
    stale = await stage.set(40, key="one", before=49)
    retried = await stage.set(40, key="one", before=49)
    right = await stage.set(40, key="two", before=50)

    assert stale["userErrors"][0]["field"] == ["input", "quantities", "0", "changeFromQuantity"]
    assert error_codes(stale) == ["CHANGE_FROM_QUANTITY_STALE"]
    assert error_codes(retried) == ["IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED"]
    assert error_codes(right) == []


async def test_a_request_to_set_several_levels_sets_all_or_none(stage: PlatformStage) -> None:
    quantities = [
        {"inventoryItemId": stage.item(0), "locationId": stage.location, "quantity": 1, "changeFromQuantity": 50},
        {"inventoryItemId": stage.item(1), "locationId": stage.location, "quantity": 1, "changeFromQuantity": 7},
    ]

    answer = await stage.set(0, key="one", quantities=quantities)

    assert error_codes(answer) == ["CHANGE_FROM_QUANTITY_STALE"]
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 50


async def test_a_level_that_stays_as_it_is_makes_no_change(stage: PlatformStage) -> None:
    await stage.subscribe("INVENTORY_LEVELS_UPDATE")

    answer = await stage.set(50, key="one", before=50)

    assert answer == {"inventoryAdjustmentGroup": None, "userErrors": []}
    assert stage.double.webhooks.waiting() == 0


async def test_the_on_hand_quantity_of_a_level_can_be_set(stage: PlatformStage) -> None:
    stage.double.state.levels.change(
        DOMAIN, stage.variants[0].item, stage.double.locations(DOMAIN)[0].id, 0, available=-5, committed=5
    )

    await stage.set(60, key="one", before=50, name="on_hand")

    level = stage.double.level(DOMAIN, stage.variants[0].id)
    assert (level.available, level.committed, level.on_hand) == (55, 5, 60)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "committed"}, "INVALID_NAME"),
        ({"reason": "because"}, "INVALID_REASON"),
        ({"referenceDocumentUri": "entry 7"}, "INVALID_REFERENCE_DOCUMENT"),
        ({"referenceDocumentUri": "gid://holdfast/LedgerEntry"}, "INVALID_REFERENCE_DOCUMENT"),
        ({"quantity": -1}, "INVALID_QUANTITY_NEGATIVE"),
        ({"quantity": 1_000_000_001}, "INVALID_QUANTITY_TOO_HIGH"),
        ({"inventoryItemId": "gid://shopify/InventoryItem/7"}, "INVALID_INVENTORY_ITEM"),
        ({"inventoryItemId": "gid://shopify/ProductVariant/7"}, "INVALID_INVENTORY_ITEM"),
        ({"locationId": "gid://shopify/Location/7"}, "INVALID_LOCATION"),
    ],
)
async def test_a_wrong_value_is_refused_by_its_code(stage: PlatformStage, changes: dict[str, Any], code: str) -> None:
    fields: dict[str, Any] = {
        "inventoryItemId": stage.item(),
        "locationId": stage.location,
        "quantity": 1,
        "changeFromQuantity": None,
    }
    quantity = fields | {name: value for name, value in changes.items() if name in fields}
    others = {name: value for name, value in changes.items() if name not in fields}

    assert error_codes(await stage.set(0, key="one", quantities=[quantity], **others)) == [code]


async def test_a_reference_document_of_an_app_is_accepted(stage: PlatformStage) -> None:
    for number, document in enumerate(("gid://holdfast/LedgerEntry/7", "https://stock.example.com/entries/7")):
        assert error_codes(await stage.set(number, key=document, referenceDocumentUri=document)) == []


async def test_a_level_cannot_be_set_twice_in_one_request(stage: PlatformStage) -> None:
    level = {"inventoryItemId": stage.item(), "locationId": stage.location, "quantity": 1, "changeFromQuantity": None}

    answer = await stage.set(0, key="one", quantities=[level, level])

    assert error_codes(answer) == ["NO_DUPLICATE_INVENTORY_ITEM_ID_GROUP_ID_PAIR"]


async def test_bundles_closed_locations_and_places_without_stock_are_refused(stage: PlatformStage) -> None:
    [kit] = stage.double.add_product(DOMAIN, "Gift box", [NewVariant("One", bundle=True)])
    stage.variants.append(kit)
    second = stage.double.add_location(DOMAIN, "Shop")
    level = {"inventoryItemId": stage.item(), "locationId": second.gid, "quantity": 1, "changeFromQuantity": None}

    bundle = await stage.set(1, key="one", variant=3)
    other_place = await stage.set(0, key="two", quantities=[level])
    set_location(stage.double.state, DOMAIN, second.id, active=False)
    closed = await stage.set(0, key="three", quantities=[level])

    assert error_codes(bundle) == ["NON_MUTABLE_INVENTORY_ITEM"]
    assert "not stocked at the location" in other_place["userErrors"][0]["message"]
    assert error_codes(closed) == ["INVALID_LOCATION"]


async def test_250_levels_are_set_at_once(stage: PlatformStage) -> None:
    variants = stage.double.add_product(DOMAIN, "Socks", [NewVariant(str(size), stock=1) for size in range(250)])
    quantities = [
        {
            "inventoryItemId": gid("InventoryItem", variant.item),
            "locationId": stage.location,
            "quantity": 2,
            "changeFromQuantity": 1,
        }
        for variant in variants
    ]

    answer = await stage.set(0, key="one", quantities=quantities)

    assert len(answer["inventoryAdjustmentGroup"]["changes"]) == 250
    assert {stage.double.available(DOMAIN, variant.id) for variant in variants} == {2}


async def test_the_app_gets_webhooks_about_its_own_changes(stage: PlatformStage) -> None:
    await stage.subscribe("INVENTORY_LEVELS_UPDATE")

    await stage.set(44, key="one", before=50)
    heard = await stage.recorder.wait_for("inventory_levels/update")

    assert heard.body["available"] == 44
    assert heard.body["inventory_item_id"] == stage.variants[0].item


async def test_an_item_is_stocked_at_a_further_location(stage: PlatformStage) -> None:
    second = stage.double.add_location(DOMAIN, "Shop")
    activate = """
    mutation($item: ID!, $place: ID!) {
      inventoryActivate(inventoryItemId: $item, locationId: $place, available: 7) @idempotent(key: "one") {
        inventoryLevel { quantities(names: ["available"]) { quantity } location { name } } userErrors { message }
      }
    }
    """

    made = (await stage.data(activate, item=stage.item(), place=second.gid))["inventoryActivate"]
    nowhere = await stage.data(activate.replace('"one"', '"two"'), item=stage.item(), place="gid://shopify/Location/7")

    assert made["inventoryLevel"] == {"quantities": [{"quantity": 7}], "location": {"name": "Shop"}}
    assert nowhere["inventoryActivate"]["userErrors"]
