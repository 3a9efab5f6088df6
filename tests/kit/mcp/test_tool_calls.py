"""Calls of tools: arguments, answers, and how they are counted."""

import json

from prometheus_client import REGISTRY

from holdfast.kit.environment.metrics import write_requests
from tests.helpers.agents import Agent, Kitchen, problem_of


async def test_an_answer_of_a_tool_is_structured_and_the_same_as_text(agent: Agent) -> None:
    result = await agent.call("get_jar", jar_id=2)

    assert result["structuredContent"] == {"id": 2, "label": "Lentils", "content": 0}
    assert result["isError"] is False
    (content,) = result["content"]
    assert content == {"type": "text", "text": '{"id":2,"label":"Lentils","content":0}'}


async def test_an_operation_without_an_answer_answers_an_empty_object(agent: Agent) -> None:
    result = await agent.call("empty_jar", jar_id=1)

    assert result["structuredContent"] == {}
    assert result["content"][0]["text"] == "{}"


async def test_arguments_may_be_left_out_when_none_is_needed(agent: Agent) -> None:
    for params in ({"name": "list_jars"}, {"name": "list_jars", "arguments": None}):
        assert len((await agent.result("tools/call", params))["structuredContent"]["jars"]) == 2


async def test_many_calls_share_a_statement(kitchen: Kitchen, agent: Agent) -> None:
    assert (await agent.call("weigh_jars", jar_id=3))["structuredContent"]["label"] == "Rice"
    assert problem_of(await agent.call("weigh_jars", jar_id=99))["code"] == "not_found"


async def test_times_in_arguments_are_read_with_their_offset(agent: Agent) -> None:
    result = await agent.call("plan_window", opens_at="2030-01-01T09:00+01:00", closes_at="2030-01-01T08:30:00Z")

    assert result["structuredContent"] == {"opens_at": "2030-01-01T08:00:00Z", "hours": 0.5}


async def test_a_change_is_made_before_it_is_answered(kitchen: Kitchen, agent: Agent) -> None:
    assert (await agent.call("fill_jar", jar_id=1, grams=40))["structuredContent"]["content"] == 40
    assert await kitchen.pantry.database.read(lambda tx: tx.value("select content from jars where id = 1")) == 40


async def test_tools_are_counted_by_name_and_outcome(kitchen: Kitchen, agent: Agent) -> None:
    def count(name: str, status: str) -> float:
        write_requests()
        return REGISTRY.get_sample_value("holdfast_requests_total", {"operation": name, "status": status}) or 0

    before = count("get_jar", "200"), count("get_jar", "404"), count("mcp", "401")
    await agent.call("get_jar", jar_id=1)
    await agent.call("get_jar", jar_id=99)
    await kitchen.stranger.ask("tools/list")

    assert (count("get_jar", "200"), count("get_jar", "404"), count("mcp", "401")) == tuple(n + 1 for n in before)


async def test_a_text_of_any_characters_is_answered_unchanged(kitchen: Kitchen, agent: Agent) -> None:
    label = 'Ünïcode "quotes" \\ \n\t\x01 🫙 </script>'
    await kitchen.pantry.database.transact(
        lambda tx: tx.run("update jars set label = %(label)s where id = 1", {"label": label})
    )

    result = await agent.call("get_jar", jar_id=1)

    assert result["structuredContent"]["label"] == label
    assert json.loads(result["content"][0]["text"])["label"] == label
