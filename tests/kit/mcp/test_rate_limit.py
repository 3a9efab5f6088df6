"""Every message to the endpoint counts against the rate limit of its caller."""

from typing import Any

import pytest

from tests.helpers.agents import STATELESS, Agent, begin_request, open_kitchen
from tests.kit.mcp.pantry import Pantry

SUBSCRIPTION: dict[str, Any] = {"notifications": {"resourcesListChanged": True}}
OF_BOTH_ERAS: list[tuple[str, dict[str, Any] | None]] = [
    ("tools/list", None),
    ("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 1}}),
    ("resources/list", None),
    ("resources/templates/list", None),
    ("resources/read", {"uri": "pantry://rules"}),
    ("resources/read", {"uri": "jar://1"}),
    ("nothing", None),
]
MESSAGES = [
    *[("2025-11-25", *case) for case in OF_BOTH_ERAS],
    ("2025-11-25", "initialize", {"protocolVersion": "2025-11-25"}),
    ("2025-11-25", "ping", None),
    ("2025-11-25", "resources/subscribe", {"uri": "jar://1"}),
    *[(STATELESS, *case) for case in OF_BOTH_ERAS],
    (STATELESS, "server/discover", None),
    (STATELESS, "subscriptions/listen", SUBSCRIPTION),
]


async def is_refused(agent: Agent) -> None:
    """Assert that not even a ping is answered, and that the answer says when to come again."""
    response = await agent.ask("ping")

    assert (response.status_code, response.json()["code"]) == (429, "rate_limited")
    assert int(response.headers["retry-after"]) == response.json()["retry_after"]


@pytest.mark.parametrize(("version", "method", "params"), MESSAGES)
async def test_a_message_of_any_method_counts_once(
    pantry_url: str, version: str, method: str, params: dict[str, Any] | None
) -> None:
    async with open_kitchen(Pantry(pantry_url, per_hour=2)) as kitchen:
        agent, other = await kitchen.agent("read_jars", version=version), await kitchen.agent("read_jars")
        for _ in range(2):
            message = agent.request(method, params)
            stream = await agent.open("POST", body=message)
            assert stream.status != 429
            if method == "subscriptions/listen":
                await stream.exchange.leave()

        await is_refused(agent)
        await other.result("ping")


async def test_a_malformed_message_counts_towards_the_rate_limit(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, per_hour=2)) as kitchen:
        agent = await kitchen.agent()
        await agent.post(b"{")
        await agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

        await is_refused(agent)


async def test_an_opened_stream_counts_towards_the_rate_limit(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, per_hour=2)) as kitchen:
        agent = await kitchen.agent("read_jars")
        for _ in range(2):
            await (await agent.get()).exchange.leave()

        refusal = await begin_request(kitchen.app, "GET", agent.headers()).response()

        assert refusal.status_code == 429


async def test_messages_of_a_batch_count_towards_the_rate_limit_one_by_one(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, per_hour=10)) as kitchen:
        agent = await kitchen.agent(version="2025-03-26")
        assert (await agent.post([agent.request("ping") for _ in range(10)])).status_code == 200

        await is_refused(agent)


async def test_a_batch_larger_than_the_rest_of_the_limit_is_refused_as_a_whole(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, per_hour=5)) as kitchen:
        agent = await kitchen.agent("read_jars", "write_jars", version="2025-03-26")
        fill = {"name": "fill_jar", "arguments": {"jar_id": 1, "grams": 10}}

        response = await agent.post([agent.request("tools/call", fill) for _ in range(6)])

        assert response.status_code == 429
        other = await kitchen.agent("read_jars")
        assert (await other.call("get_jar", jar_id=1))["structuredContent"]["content"] == 0
