"""Operations as tools: how they are listed and described, in both eras."""

import json
from typing import Any

import jsonschema
import pytest

from holdfast.kit.mcp.tools import answer_outline
from tests.helpers.agents import Agent, Kitchen


async def test_every_operation_with_hints_is_a_tool_in_the_order_of_the_table(agent: Agent) -> None:
    tools = (await agent.result("tools/list"))["tools"]

    assert [tool["name"] for tool in tools] == [
        *("add_numbers", "list_jars", "get_jar", "weigh_jars", "fill_jar", "add_jar", "empty_jar", "plan_window"),
        *("list_labels", "break_shelf", "ask_for_more", "hurry", "faint"),
    ]


async def test_a_tool_says_what_it_does_to_the_world(agent: Agent) -> None:
    tools = {tool["name"]: tool for tool in (await agent.result("tools/list"))["tools"]}

    assert tools["empty_jar"] == {
        "name": "empty_jar",
        "description": "Empty a jar.",
        "inputSchema": {
            "type": "object",
            "properties": {"jar_id": {"type": "integer"}},
            "required": ["jar_id"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object"},
        "annotations": {
            "title": "Empty jar",
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


async def test_schemas_are_sound_and_have_an_object_at_their_root(agent: Agent) -> None:
    for tool in (await agent.result("tools/list"))["tools"]:
        for name in ("inputSchema", "outputSchema"):
            jsonschema.Draft202012Validator.check_schema(tool[name])
            assert tool[name]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False


async def test_an_argument_is_described_once_for_tools_that_say_the_same_of_it(agent: Agent) -> None:
    tools = {tool["name"]: tool["inputSchema"] for tool in (await agent.result("tools/list"))["tools"]}

    assert tools["get_jar"]["properties"]["jar_id"] == {"description": "The jar, such as 1.", "type": "integer"}
    assert tools["weigh_jars"]["properties"]["jar_id"] == {"type": "integer"}


async def test_an_answer_shared_by_several_tools_is_outlined_once(agent: Agent) -> None:
    tools = {tool["name"]: tool["outputSchema"] for tool in (await agent.result("tools/list"))["tools"]}

    assert tools["get_jar"]["properties"].keys() == {"id", "content", "label"}
    assert tools["weigh_jars"] == {"type": "object", "description": "As get_jar."}


async def test_a_bare_list_is_answered_inside_an_object(agent: Agent) -> None:
    tools = {tool["name"]: tool for tool in (await agent.result("tools/list"))["tools"]}
    result = await agent.call("list_labels")

    assert result["structuredContent"] == {"data": ["Beans", "Lentils", "Rice"]}
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    jsonschema.validate(result["structuredContent"], tools["list_labels"]["outputSchema"])


async def test_an_answer_fits_its_schema(agent: Agent) -> None:
    tools = {tool["name"]: tool for tool in (await agent.result("tools/list"))["tools"]}
    calls: dict[str, dict[str, Any]] = {
        "add_numbers": {"a": 1, "b": 2},
        "list_jars": {},
        "get_jar": {"jar_id": 1},
        "weigh_jars": {"jar_id": 2},
        "fill_jar": {"jar_id": 1, "grams": 5},
        "empty_jar": {"jar_id": 1},
        "plan_window": {"opens_at": "2030-01-01T09:00:00+01:00", "closes_at": "2030-01-01T17:30:00+01:00"},
    }
    for name, arguments in calls.items():
        result = await agent.call(name, **arguments)
        for kind, value in (("inputSchema", arguments), ("outputSchema", result["structuredContent"])):
            validator: Any = jsonschema.Draft202012Validator(tools[name][kind])
            assert [*validator.iter_errors(value)] == []


async def test_a_tool_whose_answer_is_no_object_is_refused_when_the_service_starts() -> None:
    with pytest.raises(TypeError, match="not list"):
        answer_outline(list[int])


async def test_tools_are_listed_that_the_scopes_of_the_key_allow(kitchen: Kitchen) -> None:
    reader = await kitchen.agent("read_jars")
    nobody = await kitchen.agent()

    seen = [tool["name"] for tool in (await reader.result("tools/list"))["tools"]]
    assert "list_jars" in seen
    assert "fill_jar" not in seen
    seen = [tool["name"] for tool in (await nobody.result("tools/list"))["tools"]]
    assert "list_jars" not in seen
    assert "add_numbers" in seen


async def test_the_list_of_tools_has_one_page(new_agent: Agent) -> None:
    assert (await new_agent.error("tools/list", {"cursor": "2"}, status=400))["code"] == -32602


async def test_the_list_of_tools_may_be_cached_for_five_minutes_in_2026(old: Agent, new_agent: Agent) -> None:
    fresh = await new_agent.result("tools/list")
    assert (fresh["ttlMs"], fresh["cacheScope"], fresh["resultType"]) == (300_000, "private", "complete")
    assert set(await old.result("tools/list")) == {"tools"}
