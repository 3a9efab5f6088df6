"""A call without the scope is refused over HTTP with the name of the scope, and has changed nothing."""

import itertools
import json
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from holdfast.inventory.shops.model import SCOPES
from tests.helpers.inventory_service import TOOLS, Inventory, Shop
from tests.inventory.samples import ARGUMENTS, prepare_shop

NEEDED = {name: operation.scope for name, operation in TOOLS.items()}


def missing_scope(response: httpx2.Response) -> str:
    """The scope a call was refused for."""
    assert response.status_code == 403, response.text
    body = response.json()
    assert body.keys() == {"error", "message"}
    assert body["error"] == "insufficient_scope"
    challenge = response.headers["www-authenticate"]
    assert challenge.startswith("Bearer ")
    members = dict(part.strip().split("=", 1) for part in challenge.removeprefix("Bearer ").split(","))
    assert members["error"] == '"insufficient_scope"'
    assert members["resource_metadata"] == '"http://inventory.test/.well-known/oauth-protected-resource/mcp"'
    return members["scope"].strip('"')


async def list_tools(shop: Shop) -> list[str]:
    response = await shop.post_message({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    return [tool["name"] for tool in response.json()["result"]["tools"]]


def test_every_tool_needs_one_of_the_four_scopes_of_the_contract() -> None:
    assert set(NEEDED.values()) == set(SCOPES)


def test_reading_needs_a_scope_to_read_and_writing_one_to_write() -> None:
    for name, operation in TOOLS.items():
        assert str(operation.scope).startswith("read_" if operation.mode.reads else "write_"), name


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_shop(shared_inventory: Inventory) -> Shop:
    """For tests that are refused."""
    return await prepare_shop(shared_inventory)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("tool", TOOLS)
async def test_with_all_scopes_but_the_one_it_needs_a_tool_is_refused_and_nothing_is_changed(
    shared_inventory: Inventory, shared_shop: Shop, tool: str
) -> None:
    await shared_inventory.regenerate_key(shared_shop, *(scope for scope in SCOPES if scope != NEEDED[tool]))
    before = await shared_inventory.all_rows()

    response = await shared_shop.send_call(tool, ARGUMENTS[tool])

    assert missing_scope(response) == NEEDED[tool]
    assert await shared_inventory.all_rows() == before


ALSO: dict[str, set[str]] = {"create_pool": {"write_inventory"}, "import_csv": {"write_inventory"}}
"""Quantities among the sample arguments of a tool for configuration."""


@pytest.mark.parametrize("tool", TOOLS)
async def test_with_the_scope_it_needs_a_tool_needs_no_other(inventory: Inventory, tool: str) -> None:
    shop = await prepare_shop(inventory, str(NEEDED[tool]), *ALSO.get(tool, ()))

    response = await shop.send_call(tool, ARGUMENTS[tool])

    assert response.status_code == 200
    assert "structuredContent" in response.json()["result"], response.text


@pytest.mark.parametrize("count", range(1, len(SCOPES) + 1))
async def test_only_tools_the_key_may_call_are_listed(inventory: Inventory, count: int) -> None:
    for scopes in itertools.combinations(SCOPES, count):
        shop = await inventory.create_shop(*scopes)

        assert await list_tools(shop) == [name for name in TOOLS if NEEDED[name] in scopes]


async def test_a_key_without_scopes_sees_no_tools_and_can_call_none(inventory: Inventory) -> None:
    shop = await prepare_shop(inventory)
    await inventory.regenerate_key(shop)

    assert await list_tools(shop) == []
    assert missing_scope(await shop.send_call("list_pools", {})) == "read_pools"


MORE: list[tuple[str, dict[str, Any], set[str], str]] = [
    ("create_pool", {"name": "New", "quantity": 1}, {"write_pools"}, "write_pools write_inventory"),
    (
        "create_pool",
        {"name": "New", "quantity": 1, "dry_run": True},
        {"write_pools"},
        "write_pools write_inventory",
    ),
    ("export_csv", {"kind": "history"}, {"read_pools"}, "read_pools read_inventory"),
    (
        "import_csv",
        {"kind": "pools", "text": "name,quantity\nLids,3\n", "dry_run": False},
        {"write_pools"},
        "write_pools write_inventory",
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "scopes", "needed"), MORE, ids=["create", "dry", "export", "import"])
async def test_a_call_that_changes_quantities_needs_their_scope_too(
    inventory: Inventory, tool: str, arguments: dict[str, Any], scopes: set[str], needed: str
) -> None:
    """The challenge names all that the call needs, as RFC 6750 has it."""
    shop = await prepare_shop(inventory, *scopes)
    before = await inventory.all_rows()

    assert missing_scope(await shop.send_call(tool, arguments)) == needed
    assert await inventory.all_rows() == before


async def test_an_empty_quantity_cell_needs_no_scope_for_quantities(inventory: Inventory) -> None:
    shop = await prepare_shop(inventory, "write_pools")

    done = await shop.call("import_csv", kind="pools", text="name,quantity,buffer\nLids,,3\n", dry_run=False)

    assert done["applied"] is True


async def test_in_a_batch_one_call_without_its_scope_keeps_all_from_being_run(inventory: Inventory) -> None:
    shop = await prepare_shop(inventory, "write_inventory")
    before = await inventory.all_rows()
    calls = [("adjust_pool_quantity", {"pool_id": 1, "delta": -6}), ("pause_pool", {"pool_id": 1})]
    batch = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]

    response = await shop.post_message(batch, **{"mcp-protocol-version": "2025-03-26"})

    assert missing_scope(response) == "write_pools"
    assert await inventory.all_rows() == before


async def test_a_scope_that_is_taken_away_is_gone_at_once(inventory: Inventory) -> None:
    shop = await prepare_shop(inventory)
    await shop.call("adjust_pool_quantity", pool_id=1, delta=-1)
    old = shop.key

    await inventory.regenerate_key(shop, "read_pools")

    assert missing_scope(await shop.send_call("adjust_pool_quantity", {"pool_id": 1, "delta": -1})) == "write_inventory"
    shop.key = old
    response = await shop.send_call("list_pools", {})
    assert (response.status_code, json.loads(response.content)["error"]) == (401, "invalid_api_key")


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Bearer hf_x", "Basic eDp5", "Bearer \xfc"])
async def test_a_request_without_a_valid_key_is_answered_with_401(shop: Shop, authorization: str) -> None:
    headers = {b"authorization": authorization.encode("latin-1")} if authorization else {}

    response = await shop.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)

    assert response.status_code == 401
    assert response.json().keys() == {"error", "message"}
    assert response.headers["www-authenticate"].startswith("Bearer ")
