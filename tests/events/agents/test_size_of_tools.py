"""Agents read all tools before their first call, so the list is short."""

from tests.events.agents.samples import agent
from tests.helpers.events_service import Client, Service
from tests.helpers.tokens import tokens

MAX_TOKENS = 7_000


async def test_the_list_of_tools_is_short(service: Service, ada: Client) -> None:
    listed = (await agent(service, ada).result("tools/list"))["tools"]

    for tool in sorted(listed, key=tokens, reverse=True):
        print(f"{tokens(tool):6} {tool['name']}")
    print(f"{tokens(listed):6} together, of {MAX_TOKENS}")
    assert tokens(listed) <= MAX_TOKENS, "Shorten descriptions of tools, or raise the limit in decision 28 and here."
