"""Batches, which 2025-03-26 and before had."""

from typing import Any

import pytest

from holdfast.kit.mcp import handshake
from tests.helpers.agents import META, STATELESS, Agent, Kitchen, error_of, open_kitchen
from tests.kit.mcp.pantry import Pantry


@pytest.fixture
async def batcher(kitchen: Kitchen) -> Agent:
    return await kitchen.agent("read_jars", "write_jars", version="2025-03-26")


def fill(agent: Agent, grams: int, jar_id: int = 1) -> dict[str, Any]:
    return agent.request("tools/call", {"name": "fill_jar", "arguments": {"jar_id": jar_id, "grams": grams}})


async def content(agent: Agent) -> int:
    return (await agent.call("get_jar", jar_id=1))["structuredContent"]["content"]


async def test_a_batch_is_run_in_its_order_and_answered_as_one(batcher: Agent) -> None:
    response = await batcher.post([fill(batcher, 10), batcher.request("ping"), fill(batcher, 20)])

    assert response.status_code == 200
    first, second, third = response.json()
    assert [answer["id"] for answer in (first, second, third)] == [1, 2, 3]
    assert first["result"]["structuredContent"]["content"] == 10
    assert second["result"] == {}
    assert third["result"]["structuredContent"]["content"] == 30


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
async def test_the_versions_that_had_batches_have_them(batcher: Agent, version: str) -> None:
    batcher.version = version
    assert (await batcher.post([batcher.request("ping")])).status_code == 200


async def test_a_batch_without_a_version_is_accepted(batcher: Agent) -> None:
    headers = [header for header in batcher.headers() if header[0] != b"mcp-protocol-version"]

    assert (await batcher.post([batcher.request("ping")], headers)).status_code == 200


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", STATELESS])
async def test_a_batch_in_a_later_version_is_refused(batcher: Agent, version: str) -> None:
    batcher.version = version
    assert error_of(await batcher.post([batcher.request("ping")]), 400)["code"] == -32600


async def test_a_batch_has_between_one_and_a_hundred_messages(batcher: Agent) -> None:
    assert error_of(await batcher.post([]), 400)["code"] == -32600
    assert len((await batcher.post([batcher.request("ping") for _ in range(100)])).json()) == 100
    assert error_of(await batcher.post([batcher.request("ping") for _ in range(101)]), 400)["code"] == -32600


async def test_a_malformed_message_of_a_batch_is_refused_alone(batcher: Agent) -> None:
    items: list[Any] = [
        5,
        {"jsonrpc": "2.0", "id": 7},
        [],
        batcher.request("nothing"),
        fill(batcher, 500),
        fill(batcher, 10),
    ]

    answers = (await batcher.post(items)).json()

    assert [answer["error"]["code"] for answer in answers[:4]] == [-32600, -32600, -32600, -32601]
    assert [answer["id"] for answer in answers[:4]] == [None, 7, None, 1]
    assert answers[4]["result"]["isError"] is True
    assert answers[5]["result"]["structuredContent"]["content"] == 10


async def test_notifications_and_responses_are_not_answered(batcher: Agent) -> None:
    quiet: list[Any] = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
    ]

    response = await batcher.post(quiet)
    assert (response.status_code, response.content) == (202, b"")
    assert [answer["id"] for answer in (await batcher.post([*quiet, batcher.request("ping")])).json()] == [1]


async def test_a_repeated_id_in_a_batch_is_refused(batcher: Agent) -> None:
    ping = batcher.request("ping")

    first, second = (await batcher.post([ping, ping])).json()

    assert "result" in first
    assert second["error"]["code"] == -32600


async def test_an_initialize_request_in_a_batch_is_refused(batcher: Agent) -> None:
    (answer,) = (await batcher.post([batcher.request("initialize", {"protocolVersion": "2025-03-26"})])).json()

    assert answer["error"]["code"] == -32600


async def test_a_request_of_2026_in_a_batch_is_refused(batcher: Agent) -> None:
    (answer,) = (await batcher.post([batcher.request("tools/list", {"_meta": META})])).json()

    assert answer["error"]["code"] == -32600


async def test_a_missing_scope_refuses_the_whole_batch_before_anything_is_changed(
    kitchen: Kitchen, batcher: Agent
) -> None:
    writer = await kitchen.agent("write_jars", version="2025-03-26")
    for late in (
        writer.request("tools/call", {"name": "get_jar", "arguments": {"jar_id": 1}}),
        writer.request("resources/read", {"uri": "jar://1"}),
    ):
        response = await writer.post([fill(writer, 10), late])

        assert response.status_code == 403
        assert 'scope="read_jars"' in response.headers["www-authenticate"]
    assert await content(batcher) == 0


async def test_a_reached_limit_refuses_the_whole_batch_before_anything_is_changed(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, per_hour=2)) as kitchen:
        batcher = await kitchen.agent("read_jars", "write_jars", version="2025-03-26")
        other = await kitchen.agent("read_jars")

        assert (await batcher.post([fill(batcher, 10) for _ in range(3)])).status_code == 429
        assert await content(other) == 0


async def test_a_batch_whose_answers_are_too_long_is_not_run_to_its_end(
    batcher: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "MAX_BATCH_ANSWER_BYTES", 1_000)
    messages = [fill(batcher, 10), batcher.request("tools/list"), fill(batcher, 10), batcher.request("ping")]

    first, second, third, fourth = (await batcher.post(messages)).json()

    assert first["result"]["structuredContent"]["content"] == 10
    assert len(second["result"]["tools"]) > 1
    for answer in (third, fourth):
        assert answer["error"]["data"]["code"] == "service_unavailable"
        assert answer["error"]["data"]["hint"] == "Send it again, in another batch."
    assert await content(batcher) == 10


async def test_a_late_failure_in_a_batch_belongs_to_its_message_only(batcher: Agent) -> None:
    late = [batcher.request("tools/call", {"name": name}) for name in ("ask_for_more", "hurry", "faint", "break_shelf")]

    answers = (await batcher.post([fill(batcher, 10), *late, fill(batcher, 10)])).json()

    assert [answer["error"]["code"] for answer in answers[1:5]] == [-32603] * 4
    assert [answer["error"]["data"].get("code") for answer in answers[1:5]] == [
        *("insufficient_scope", "rate_limited", "service_unavailable", "internal_error"),
    ]
    assert answers[5]["result"]["structuredContent"]["content"] == 20
