"""A tool refuses any wrong arguments in words, and has then changed nothing.

What a tool takes is what its `inputSchema` says: an argument that does not fit there is refused by name.
"""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from holdfast.kit.mcp.tools import definition
from tests.helpers.generated import fits
from tests.helpers.inventory_service import SINGLE, TOOLS, Inventory, Shop
from tests.inventory.samples import ARGUMENTS, prepare_shop

every_tool = pytest.mark.parametrize("tool", TOOLS)
in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""For tests that share the shop of this module: what is refused changes nothing."""

WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    -(2**63) - 1,
    2**63,
    10**30,
    -(10**30),
    1e308,
    1.5,
    "",
    "x",
    "1",
    "x" * 10_000,
    "gid://shopify/ProductVariant/1001\n",
    "gid://shopify/Product/1001",
    "2026-13-01T00:00:00Z",
    [],
    [None],
    [{}],
    ["x"],
    [[[]]],
    {},
    {"pool_id": 1},
    [{"pool_id": 1, "delta": -1, "more": 1}],
    [{"variant_gid": SINGLE, "units_per_sale": 0}],
    [{"variant_gid": SINGLE, "quantity": 0}],
]
DATES = {"at", "since", "until"}
"""Schemas leave it to the reader to check a format; these are checked below."""


@pytest.fixture(scope="module")
def inventory(shared_inventory: Inventory) -> Inventory:
    return shared_inventory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(inventory: Inventory) -> Shop:
    return await prepare_shop(inventory)


def schema(tool: str) -> dict[str, Any]:
    return definition(TOOLS[tool])["inputSchema"]


def errors(response: httpx2.Response) -> dict[str, list[str]]:
    """The fields a call was refused for."""
    assert response.status_code == 200, response.text
    result = response.json()["result"]
    assert result["isError"] is True, result
    body = json.loads(result["content"][0]["text"])
    assert body["code"] == "validation_failed", body
    assert all(isinstance(message, str) and message for texts in body["errors"].values() for message in texts)
    assert body["retryable"] is False
    return body["errors"]


def test_every_tool_has_sample_arguments() -> None:
    assert ARGUMENTS.keys() == TOOLS.keys()


@every_tool
async def test_a_valid_call_is_answered_as_its_output_schema_says(new_inventory: Inventory, tool: str) -> None:
    answer = await (await prepare_shop(new_inventory)).call(tool, **ARGUMENTS[tool])

    assert fits(definition(TOOLS[tool])["outputSchema"], answer)


@in_one_loop
@every_tool
async def test_an_unknown_argument_is_named(shop: Shop, inventory: Inventory, tool: str) -> None:
    before = await inventory.all_rows()

    response = await shop.send_call(tool, {**ARGUMENTS[tool], "dryrun": True, "Limit": 1})

    assert errors(response) == {"dryrun": ["unknown field"], "Limit": ["unknown field"]}
    assert await inventory.all_rows() == before


@in_one_loop
@every_tool
async def test_every_argument_that_is_missing_is_named(shop: Shop, inventory: Inventory, tool: str) -> None:
    before = await inventory.all_rows()
    required: list[str] = schema(tool).get("required", [])

    if required:
        assert errors(await shop.send_call(tool, {})).items() >= {name: ["is required"] for name in required}.items()
    for name in required:
        arguments = {other: value for other, value in ARGUMENTS[tool].items() if other != name}
        assert errors(await shop.send_call(tool, arguments)) == {name: ["is required"]}
    assert await inventory.all_rows() == before


@in_one_loop
@every_tool
async def test_an_argument_that_does_not_fit_the_schema_is_refused_by_name(
    shop: Shop, inventory: Inventory, tool: str
) -> None:
    before = await inventory.all_rows()

    for name in schema(tool)["properties"]:
        for wrong in WRONG:
            arguments = {**ARGUMENTS[tool], name: wrong}
            # For what is optional null means absent.
            if fits(schema(tool), arguments) or (wrong is None and name not in schema(tool).get("required", ())):
                continue
            assert list(errors(await shop.send_call(tool, arguments))) == [name], (name, wrong)
    assert await inventory.all_rows() == before


@in_one_loop
@every_tool
async def test_all_invalid_arguments_are_named_at_once(shop: Shop, inventory: Inventory, tool: str) -> None:
    before = await inventory.all_rows()
    names = schema(tool)["properties"].keys()

    assert errors(await shop.send_call(tool, {name: {"not": "this"} for name in names})).keys() == names
    assert await inventory.all_rows() == before


def _as_sku(text: str) -> list[dict[str, Any]]:
    return [{"variant_gid": SINGLE, "units_per_sale": 1, "sku": text}]


def texts(tool: str) -> list[tuple[str, Callable[[str], Any]]]:
    """Every argument of a tool that is, or holds, a text: its name, and a way to put one there."""
    text_fields: list[tuple[str, Callable[[str], Any]]] = []
    for name, field in schema(tool)["properties"].items():
        if "string" in field.get("type", ()):
            text_fields.append((name, str))
        elif name == "members":
            text_fields.append((name, _as_sku))
    return text_fields


@in_one_loop
@every_tool
async def test_a_text_with_a_nul_is_refused_by_name(shop: Shop, inventory: Inventory, tool: str) -> None:
    before = await inventory.all_rows()

    for name, put in texts(tool):
        for text in ("\x00", "a\x00b", f"{SINGLE}\x00"):
            refusal = errors(await shop.send_call(tool, {**ARGUMENTS[tool], name: put(text)}))
            assert list(refusal) == [name], text
    assert await inventory.all_rows() == before


@in_one_loop
@every_tool
async def test_a_text_that_is_no_unicode_is_refused(shop: Shop, inventory: Inventory, tool: str) -> None:
    """Half a surrogate pair can be written in JSON, and is no character."""
    before = await inventory.all_rows()
    headers = {"authorization": f"Bearer {shop.key}", "content-type": "application/json"}

    for name, put in texts(tool):
        for half in ("\ud800", "a\udc00b", "\udfff\ud800"):
            params = {"name": tool, "arguments": {**ARGUMENTS[tool], name: put(half)}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            response = await shop.http.post("/mcp", content=json.dumps(message).encode(), headers=headers)
            assert response.status_code in {200, 400}, response.text
            answer = response.json()
            assert answer.get("error", {}).get("code") in {-32700, -32602} or answer["result"]["isError"]
    assert await inventory.all_rows() == before


@in_one_loop
@every_tool
async def test_an_invalid_time_is_refused_by_name(shop: Shop, tool: str) -> None:
    for name in DATES & schema(tool)["properties"].keys():
        for wrong in ("soon", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", ""):
            assert list(errors(await shop.send_call(tool, {**ARGUMENTS[tool], name: wrong}))) == [name], wrong


@in_one_loop
@every_tool
async def test_arguments_that_are_no_object_are_an_error_of_the_protocol(
    shop: Shop, inventory: Inventory, tool: str
) -> None:
    before = await inventory.all_rows()

    for arguments in ([], [1], "{}", 7, True):
        response = await shop.send_call(tool, arguments)
        assert response.status_code == 200
        assert response.json()["error"]["code"] == -32602
    assert await inventory.all_rows() == before


REACHING = [
    tool
    for tool, arguments in ARGUMENTS.items()
    if arguments.keys() & {"pool_id", "from_pool_id", "items", "hold_id", "entry_id", "variant_gid", "lines"}
]


@in_one_loop
@pytest.mark.parametrize("tool", REACHING)
async def test_an_id_of_another_shop_is_not_found(shop: Shop, inventory: Inventory, tool: str) -> None:
    other = await inventory.create_shop()
    before = await inventory.all_rows()

    refusal = await other.refusal(tool, **ARGUMENTS[tool])

    assert refusal["code"] == "not_found"
    assert await inventory.all_rows() == before


@in_one_loop
@pytest.mark.parametrize("tool", ["", "list_pool", "LIST_POOLS", "list_pools ", "__class__", "x" * 10_000])
async def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(shop: Shop, tool: str) -> None:
    response = await shop.send_call(tool, {})

    assert response.status_code == 200
    assert response.json()["error"]["code"] == -32602
