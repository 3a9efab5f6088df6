"""Metafields of variants: the scope for products writes them, and values have the form of their types."""

from typing import Any

from tests.demo.shopify.stage import DOMAIN, PlatformStage

WRITE = (
    "mutation($metafields: [MetafieldsSetInput!]!) { metafieldsSet(metafields: $metafields) {"
    " metafields { namespace value compareDigest } userErrors { code field elementIndex } } }"
)
READ = '{ productVariant(id: "%s") { metafield(namespace: "$app:stock", key: "pools") { value compareDigest } } }'


def metafield_input(stage: PlatformStage, **fields: Any) -> dict[str, Any]:
    usual = {"ownerId": stage.variants[0].gid, "namespace": "$app:stock", "key": "pools", "type": "json", "value": "{}"}
    return usual | fields


def allow(stage: PlatformStage, *scopes: str) -> None:
    shop = stage.double.shop(DOMAIN)
    shop.scopes = [*shop.scopes, *scopes]
    stage.double.state.store.put(DOMAIN, shop)


async def test_a_variant_is_written_only_with_the_scope_for_products(stage: PlatformStage) -> None:
    code, message = await stage.refuses(WRITE, metafields=[metafield_input(stage)])
    assert (code, "`write_products`" in message) == ("ACCESS_DENIED", True)
    assert (await stage.data(READ % stage.variants[0].gid))["productVariant"]["metafield"] is None

    allow(stage, "write_products")
    answer = (await stage.data(WRITE, metafields=[metafield_input(stage)]))["metafieldsSet"]

    (metafield,) = answer["metafields"]
    assert (metafield["namespace"], metafield["value"], answer["userErrors"]) == ("app--1--stock", "{}", [])
    stored = (await stage.data(READ % stage.variants[0].gid))["productVariant"]["metafield"]
    assert stored == {"value": "{}", "compareDigest": metafield["compareDigest"]}


async def test_values_and_names_that_are_wrong_are_refused_and_nothing_is_written(stage: PlatformStage) -> None:
    allow(stage, "write_products")
    wrong: dict[str, dict[str, Any]] = {
        "INVALID_VALUE value": {"value": "{"},
        "INVALID_VALUE value too long": {"value": f'"{"x" * 65_536}"'},
        "INVALID_TYPE type": {"type": "colour"},
        "INVALID namespace": {"namespace": "a b"},
        "INVALID namespace too short": {"namespace": "ab"},
        "INVALID key": {"key": "x"},
        "INVALID ownerId": {"ownerId": "gid://shopify/ProductVariant/1"},
        "BLANK type": {"type": None},
        "STALE_OBJECT compareDigest": {"compareDigest": "0" * 64},
    }
    for name, fields in wrong.items():
        answer = (
            await stage.data(WRITE, metafields=[metafield_input(stage, key="other"), metafield_input(stage, **fields)])
        )["metafieldsSet"]
        (error,) = answer["userErrors"]
        code, field, *_ = name.split()
        assert (error["code"], error["field"], error["elementIndex"]) == (code, ["metafields", "1", field], 1), name

    many = (await stage.data(WRITE, metafields=[metafield_input(stage)] * 26))["metafieldsSet"]
    assert many["userErrors"][0]["code"] == "LESS_THAN_OR_EQUAL_TO"
    count = stage.double.state.store.db.execute("select count(*) from things where kind = 'Metafield'").fetchone()
    assert count == (0,)
