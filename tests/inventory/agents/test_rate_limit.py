"""`MCP_RATE_LIMIT` is the number of messages of any method that a key may send in a second."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.inventory_service import running_inventory, unlimited

METHODS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "list_pools", "arguments": {}}),
    ("resources/list", {}),
    ("resources/read", {"uri": "pool://1"}),
    ("ping", {}),
]


@pytest.mark.parametrize(("method", "params"), METHODS)
async def test_a_key_that_sends_too_many_messages_in_a_second_is_refused(
    inventory_url: str, tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    async with running_inventory(unlimited(inventory_url, tmp_path, messages_per_second=2)) as inventory:
        shop = await inventory.create_shop()
        batch = [{"jsonrpc": "2.0", "id": id, "method": method, "params": params} for id in range(3)]

        response = await shop.post_message(batch, **{"mcp-protocol-version": "2025-03-26"})

        assert (response.status_code, response.json()["error"]) == (429, "rate_limited")
        assert int(response.headers["retry-after"]) == 1
