"""Requests that the platform refuses are refused by the double: invalid, too expensive, or outside the scopes."""

from typing import Any

import pytest

from tests.demo.shopify.stage import DOMAIN, SET, PlatformStage

PAGE = "query($first: Int, $last: Int, $after: String) { products(first: $first, last: $last, after: $after) { %s } }"
NODES = PAGE % "nodes { id }"
DEEP = PAGE % "nodes { variants(first: 10) { nodes { id } } }"
BY_ID = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
FOUND = "{ products(first: 1, %s) { nodes { id } } }"
KEYLESS = SET.replace("@idempotent(key: $key)", "").replace(", $key: String!", "")
LEVEL = {"inventoryItemId": "gid://shopify/InventoryItem/1", "locationId": "gid://shopify/Location/1", "quantity": 1}


def set_input(**quantities: Any) -> dict[str, Any]:
    input = {"name": "available", "reason": "correction", "quantities": [LEVEL | {"changeFromQuantity": None}]}
    return {"input": input | quantities, "key": "k"}


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no query": ("", {}, "Syntax Error"),
    "a query that is cut off": ("{ shop { id }", {}, "Syntax Error"),
    "a field that the schema does not have": ("{ shop { password } }", {}, "Cannot query field 'password'"),
    "an object without fields": ("{ shop }", {}, "must have a selection of subfields"),
    "a variable that is missing": ("query($id: ID!) { product(id: $id) { id } }", {}, "to be provided"),
    "a variable of another type": (NODES, {"first": "many"}, "Int cannot represent"),
    "an operation that is not named": (
        "query A { shop { id } } query B { shop { id } }",
        {},
        "operation name is required",
    ),
    "a list without a size": (NODES, {}, "you must provide one of first or last"),
    "a list with two sizes": (NODES, {"first": 1, "last": 1}, "you must provide one of first or last"),
    "a list that is too long": (NODES, {"first": 251}, "between 1 and 250"),
    "an empty list": (NODES, {"first": 0}, "between 1 and 250"),
    "a cursor that nobody gave out": (NODES, {"first": 1, "after": "bm8="}, "Invalid cursor"),
    "an id of another kind": ('{ product(id: "gid://shopify/Order/1") { id } }', {}, "Invalid global id"),
    "an id that is no number": ('{ order(id: "gid://shopify/Order/x") { id } }', {}, "Invalid global id"),
    "what would cost too much": (DEEP, {"first": 250}, "single query max cost"),
    "too many ids": (BY_ID, {"ids": ["gid://shopify/Order/1"] * 251}, "array size of 251"),
    "a level without a key": (KEYLESS, {"input": set_input()["input"]}, "@idempotent directive is required"),
    "a level with an empty key": (SET, set_input() | {"key": " "}, "cannot be an empty string"),
    "a level with no key at all": (SET, set_input() | {"key": None}, "not to be None"),
    "too many levels": (SET, set_input(quantities=[LEVEL | {"changeFromQuantity": None}] * 251), "array size of 251"),
    "a level that is not compared": (SET, set_input(quantities=[LEVEL]), "must include changeFromQuantity"),
    "a level compared as it was before 2026-04": (SET, set_input(ignoreCompareQuantity=True), "ignoreCompareQuantity"),
    "a key for a read": ('{ shop { name @idempotent(key: "a") idd: nothing } }', {}, "Cannot query field"),
    "a filter that the double does not know": (FOUND % 'query: "vendor:x"', {}, "does not search by vendor"),
    "alternatives in a search": (FOUND % 'query: "a OR b"', {}, "knows no OR"),
    "a sort key that the double does not know": (FOUND % "sortKey: RELEVANCE", {}, "does not sort by RELEVANCE"),
}


async def test_an_invalid_query_is_refused_with_the_reason(stage: PlatformStage) -> None:
    unlike: list[str] = []
    for name, (query, variables, reason) in REFUSED.items():
        errors = (await stage.ask(query, **variables)).get("errors")
        if not errors or reason not in errors[0]["message"]:
            unlike.append(f"{name}: {errors}")

    assert unlike == []


@pytest.mark.parametrize("token", ["", "shpat_wrong", "shpat_\u00e9"], ids=["none", "unknown", "not ASCII"])
async def test_a_request_without_a_token_is_refused(stage: PlatformStage, token: str) -> None:
    path = f"/{DOMAIN}/admin/api/2026-10/graphql.json"
    headers = {b"X-Shopify-Access-Token": token.encode()}

    answer = await stage.http.post(path, json={"query": "{ shop { id } }"}, headers=headers)

    assert answer.status_code == 401
    assert "Invalid API key or access token" in answer.json()["errors"]


async def test_a_token_of_another_shop_is_no_token(stage: PlatformStage) -> None:
    stage.double.open("second.myshopify.com")
    stage.double.install("second.myshopify.com")

    answer = await stage.post({"query": "{ shop { id } }"}, shop="second.myshopify.com")

    assert answer.status_code == 401


async def test_a_malformed_request_is_refused(stage: PlatformStage) -> None:
    path, headers = f"/{DOMAIN}/admin/api/2026-10/graphql.json", {"X-Shopify-Access-Token": stage.token}
    json = {**headers, "Content-Type": "application/json"}

    form = await stage.http.post(path, data={"query": "{ shop { id } }"}, headers=headers)
    cut = await stage.http.post(path, content=b'{"query":', headers=json)
    empty = await stage.http.post(path, content=b"[]", headers=json)
    variables = await stage.http.post(path, json={"query": "{ shop { id } }", "variables": [1]}, headers=json)
    large = await stage.http.post(path, content=b" " * 1_100_000, headers=json)
    old = await stage.http.post(path.replace("2026-10", "2026-07"), json={"query": "{ shop { id } }"}, headers=json)

    assert [response.status_code for response in (form, cut, empty, variables, large, old)] == [
        400,
        400,
        400,
        400,
        400,
        404,
    ]


async def test_a_field_outside_the_scopes_of_the_app_is_denied_at_its_path(stage: PlatformStage) -> None:
    stage.double.install(DOMAIN, ["read_products"])

    products = await stage.ask("{ products(first: 1) { nodes { id } } }")
    orders = await stage.ask("{ orders(first: 1) { nodes { id } } shop { id } }")
    level = await stage.refuses(
        "query($id: ID!) { inventoryItem(id: $id) { inventoryLevels(first: 1) { nodes { id } } } }", id=stage.item()
    )

    assert "errors" not in products
    [error] = orders["errors"]
    assert error["path"] == ["orders"]
    assert error["extensions"]["code"] == "ACCESS_DENIED"
    assert error["extensions"]["requiredAccess"] == "`read_orders` access scope."
    assert level[0] == "ACCESS_DENIED"
    denied = await stage.ask(SET, **set_input())
    assert denied["errors"][0]["extensions"]["code"] == "ACCESS_DENIED"
