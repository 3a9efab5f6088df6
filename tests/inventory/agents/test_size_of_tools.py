"""Agents read all tools before their first call, so the list is short."""

from tests.helpers.inventory_service import Shop
from tests.helpers.tokens import tokens

MAX_TOKENS = 10_000


async def test_the_list_of_tools_is_at_most_ten_thousand_tokens(shop: Shop) -> None:
    listed = (await shop.post_message({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).json()["result"]["tools"]

    for tool in sorted(listed, key=tokens, reverse=True):
        print(f"{tokens(tool):6} {tool['name']}")
    print(f"{tokens(listed):6} together, of {MAX_TOKENS}")
    assert tokens(listed) <= MAX_TOKENS
