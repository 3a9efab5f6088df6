"""Levels are changed by differences: once for each key, all or none."""

from typing import Any

import pytest

from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.shops import NewVariant, set_location
from tests.demo.shopify.stage import ADJUST, DOMAIN, PlatformStage


def error_codes(answer: Any) -> list[Any]:
    return [error["code"] for error in answer["userErrors"]]


def change_of_level(stage: PlatformStage, **changes: Any) -> dict[str, Any]:
    return {**stage.level(), "delta": -6, "changeFromQuantity": None, **changes}


async def test_a_level_is_changed_by_a_difference_whatever_it_is(stage: PlatformStage) -> None:
    stage.double.count(DOMAIN, stage.variants[0].id, 30)

    answer = await stage.adjust(-6, key="one")

    assert answer["userErrors"] == []
    assert answer["inventoryAdjustmentGroup"]["changes"] == [
        {"delta": -6, "quantityAfterChange": 24, "item": {"id": stage.item()}}
    ]
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 24


async def test_an_adjustment_repeated_with_its_key_is_done_once_and_answered_alike(stage: PlatformStage) -> None:
    first = await stage.adjust(-6, key="one")
    stage.double.count(DOMAIN, stage.variants[0].id, 30)
    again = await stage.adjust(-6, key="one")
    other = await stage.adjust(-7, key="one")

    assert again == first
    assert error_codes(other) == ["IDEMPOTENCY_KEY_PARAMETER_MISMATCH"]
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 30


async def test_a_key_used_for_setting_is_refused_for_adjusting(stage: PlatformStage) -> None:
    await stage.set(44, key="one", before=50)

    assert error_codes(await stage.adjust(-6, key="one")) == ["IDEMPOTENCY_KEY_PARAMETER_MISMATCH"]
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 44


async def test_an_adjustment_without_a_key_or_a_comparison_is_refused(stage: PlatformStage) -> None:
    change = change_of_level(stage)
    input = {"name": "available", "reason": "correction", "changes": [change]}
    no_key = await stage.refuses(
        ADJUST.replace("@idempotent(key: $key)", "").replace(", $key: String!", ""), input=input
    )
    del change["changeFromQuantity"]
    no_comparison = await stage.refuses(ADJUST, input=input, key="one")

    assert no_key[0] == "BAD_REQUEST"
    assert no_comparison[0] == "INVALID_FIELD_ARGUMENTS"
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 50


async def test_a_level_can_be_compared_all_the_same(stage: PlatformStage) -> None:
    stale = await stage.adjust(0, key="one", changes=[change_of_level(stage, changeFromQuantity=49)])
    again = await stage.adjust(0, key="one", changes=[change_of_level(stage, changeFromQuantity=49)])
    right = await stage.adjust(0, key="two", changes=[change_of_level(stage, changeFromQuantity=50)])

    assert stale["userErrors"][0]["field"] == ["input", "changes", "0", "changeFromQuantity"]
    assert [error_codes(answer) for answer in (stale, again, right)] == [
        ["CHANGE_FROM_QUANTITY_STALE"],
        ["IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED"],
        [],
    ]


async def test_a_level_may_fall_below_zero_but_not_below_minus_two_thousand_million(stage: PlatformStage) -> None:
    assert error_codes(await stage.adjust(-60, key="one")) == []
    assert stage.double.available(DOMAIN, stage.variants[0].id) == -10
    assert error_codes(await stage.adjust(-2_000_000_000, key="two")) == ["INVALID_QUANTITY_TOO_LOW"]
    assert error_codes(await stage.adjust(2_000_000_011, key="three")) == ["INVALID_QUANTITY_TOO_HIGH"]


async def test_an_adjustment_of_several_levels_changes_all_or_none(stage: PlatformStage) -> None:
    changes = [change_of_level(stage), change_of_level(stage, inventoryItemId="gid://shopify/InventoryItem/7")]

    answer = await stage.adjust(0, key="one", changes=changes)

    assert error_codes(answer) == ["INVALID_INVENTORY_ITEM"]
    assert answer["userErrors"][0]["field"] == ["input", "changes", "1", "inventoryItemId"]
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 50


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "on_hand"}, "INVALID_QUANTITY_NAME"),
        ({"reason": "because"}, "INVALID_REASON"),
        ({"referenceDocumentUri": "entry 7"}, "INVALID_REFERENCE_DOCUMENT"),
        ({"ledgerDocumentUri": "gid://holdfast/LedgerEntry/7"}, "INVALID_AVAILABLE_DOCUMENT"),
        ({"inventoryItemId": "gid://shopify/ProductVariant/7"}, "INVALID_INVENTORY_ITEM"),
        ({"locationId": "gid://shopify/Location/7"}, "INVALID_LOCATION"),
    ],
)
async def test_a_wrong_value_is_refused_by_its_code(stage: PlatformStage, changes: dict[str, Any], code: str) -> None:
    general = {name: value for name, value in changes.items() if name in {"name", "reason", "referenceDocumentUri"}}
    change = change_of_level(stage, **{name: value for name, value in changes.items() if name not in general})

    assert error_codes(await stage.adjust(0, key="one", changes=[change], **general)) == [code]


async def test_bundles_closed_locations_and_places_without_stock_are_refused(stage: PlatformStage) -> None:
    [kit] = stage.double.add_product(DOMAIN, "Gift box", [NewVariant("One", bundle=True)])
    stage.variants.append(kit)
    second = stage.double.add_location(DOMAIN, "Shop")

    bundle = await stage.adjust(1, key="one", variant=3)
    other_place = await stage.adjust(0, key="two", changes=[change_of_level(stage, locationId=second.gid)])
    set_location(stage.double.state, DOMAIN, second.id, active=False)
    closed = await stage.adjust(0, key="three", changes=[change_of_level(stage, locationId=second.gid)])

    assert error_codes(bundle) == ["NON_MUTABLE_INVENTORY_ITEM"]
    assert "not stocked at the location" in other_place["userErrors"][0]["message"]
    assert error_codes(closed) == ["INVALID_LOCATION"]


async def test_at_most_250_levels_are_changed_at_once(stage: PlatformStage) -> None:
    input = {"name": "available", "reason": "correction", "changes": [change_of_level(stage)] * 251}

    code, _ = await stage.refuses(ADJUST, input=input, key="one")

    assert code == "MAX_INPUT_SIZE_EXCEEDED"


@pytest.mark.parametrize(("kind", "code"), [("away", "SERVICE_UNAVAILABLE"), ("failing", "ADJUST_QUANTITIES_FAILED")])
async def test_a_platform_that_cannot_change_levels_now_says_so_and_has_changed_none(
    stage: PlatformStage, kind: Any, code: str
) -> None:
    stage.double.plan(Fault(kind))
    refusal = await stage.adjust(-6, key="one")
    again = await stage.adjust(-6, key="one")

    assert (error_codes(refusal), error_codes(again)) == ([code], [])
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 44
