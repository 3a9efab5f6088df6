"""Operations as tools: how they are listed, called and refused, in both eras."""

import json
from typing import Any

import jsonschema
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from holdfast.kit.mcp.tools import schema
from tests.kit.mcp.pantry import Pantry
from tests.kit.mcp.wire import Agent, Kitchen, error, opened, told

# The list


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
        "title": "Empty jar",
        "description": "Empty a jar.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "jar_id": {
                    "description": "The jar, such as 1.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 2**63 - 1,
                }
            },
            "required": ["jar_id"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
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
        assert all(each["description"] for each in tool["inputSchema"]["properties"].values())


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
        jsonschema.validate(arguments, tools[name]["inputSchema"])
        result = await agent.call(name, **arguments)
        jsonschema.validate(result["structuredContent"], tools[name]["outputSchema"])


async def test_a_tool_whose_answer_is_no_object_is_refused_when_the_service_starts() -> None:
    with pytest.raises(TypeError, match="not list"):
        schema(list[int])


async def test_an_agent_sees_the_tools_its_scopes_allow(kitchen: Kitchen) -> None:
    reader = await kitchen.agent("read_jars")
    nobody = await kitchen.agent()

    seen = [tool["name"] for tool in (await reader.result("tools/list"))["tools"]]
    assert "list_jars" in seen
    assert "fill_jar" not in seen
    seen = [tool["name"] for tool in (await nobody.result("tools/list"))["tools"]]
    assert "list_jars" not in seen
    assert "add_numbers" in seen


async def test_the_list_has_one_page(new: Agent) -> None:
    assert (await new.error("tools/list", {"cursor": "2"}, status=400))["code"] == -32602


async def test_clients_of_2026_may_keep_the_list_for_five_minutes(old: Agent, new: Agent) -> None:
    fresh = await new.result("tools/list")
    assert (fresh["ttlMs"], fresh["cacheScope"], fresh["resultType"]) == (300_000, "private", "complete")
    assert set(await old.result("tools/list")) == {"tools"}


# Calls


async def test_an_answer_is_structured_and_the_same_as_text(agent: Agent) -> None:
    result = await agent.call("get_jar", jar_id=2)

    assert result["structuredContent"] == {"id": 2, "label": "Lentils", "content": 0}
    assert result["isError"] is False
    (content,) = result["content"]
    assert content == {"type": "text", "text": '{"id":2,"label":"Lentils","content":0}'}


async def test_an_operation_that_answers_nothing_answers_an_empty_object(agent: Agent) -> None:
    result = await agent.call("empty_jar", jar_id=1)

    assert result["structuredContent"] == {}
    assert result["content"][0]["text"] == "{}"


async def test_arguments_may_be_left_out_when_none_is_needed(agent: Agent) -> None:
    for params in ({"name": "list_jars"}, {"name": "list_jars", "arguments": None}):
        assert len((await agent.result("tools/call", params))["structuredContent"]["jars"]) == 2


async def test_many_calls_share_a_statement(kitchen: Kitchen, agent: Agent) -> None:
    assert (await agent.call("weigh_jars", jar_id=3))["structuredContent"]["label"] == "Rice"
    assert told(await agent.call("weigh_jars", jar_id=99))["code"] == "not_found"


async def test_times_are_read_with_their_zone(agent: Agent) -> None:
    result = await agent.call("plan_window", opens_at="2030-01-01T09:00+01:00", closes_at="2030-01-01T08:30:00Z")

    assert result["structuredContent"] == {"opens_at": "2030-01-01T08:00:00Z", "hours": 0.5}


async def test_a_change_is_made_before_it_is_answered(kitchen: Kitchen, agent: Agent) -> None:
    assert (await agent.call("fill_jar", jar_id=1, grams=40))["structuredContent"]["content"] == 40
    assert await kitchen.pantry.database.read(lambda tx: tx.value("select content from jars where id = 1")) == 40


# Refusals that models read


async def test_every_unacceptable_argument_is_named(agent: Agent) -> None:
    problem = told(await agent.call("fill_jar", jar_id=0, grams="much", spoon=1))

    assert problem["code"] == "validation_failed"
    assert problem["retryable"] is False
    assert problem["hint"]
    assert problem["errors"] == {
        "jar_id": ["expected an integer >= 1"],
        "grams": ["expected an integer, got a string"],
        "spoon": ["unknown field"],
    }


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "jar_id"),
        ({"jar_id": 1, "grams": 1001}, "grams"),
        ({"jar_id": 1, "grams": 600}, "grams"),
        ({"jar_id": 1, "grams": 5, "note": "a\x00b"}, "note"),
        ({"jar_id": 1, "grams": 5, "note": 7}, "note"),
        ({"jar_id": 2**70, "grams": 5}, "jar_id"),
        ({"jar_id": 1.5, "grams": 5}, "jar_id"),
        ({"jar_id": True, "grams": 5}, "jar_id"),
        ({"jar_id": 1, "grams": None}, "grams"),
    ],
)
async def test_an_unacceptable_argument_is_told_as_a_result(
    agent: Agent, arguments: dict[str, Any], field: str
) -> None:
    assert field in told(await agent.call("fill_jar", **arguments))["errors"]


async def test_a_refusal_of_an_operation_is_a_result_with_all_it_says(agent: Agent) -> None:
    assert told(await agent.call("fill_jar", jar_id=1, grams=101)) == {
        "code": "jar_full",
        "message": "101 g do not fit.",
        "hint": "Put in less, or empty the jar first.",
        "retryable": False,
        "room": 100,
    }
    assert told(await agent.call("get_jar", jar_id=99))["code"] == "not_found"


async def test_a_name_of_nothing_is_an_error_of_the_protocol(old: Agent, new: Agent) -> None:
    for name in ("nothing", "hidden", "", "add_numbers ", "ADD_NUMBERS"):
        assert (await old.error("tools/call", {"name": name}))["code"] == -32602
    assert (await new.error("tools/call", {"name": "nothing"}, status=400))["code"] == -32602


async def test_a_call_without_a_name_or_with_arguments_that_are_no_object_is_an_error(old: Agent) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"name": 5},
        {"name": None},
        {"name": "add_numbers", "arguments": []},
        {"name": "add_numbers", "arguments": "{}"},
        {"name": "add_numbers", "arguments": 3},
    ]
    for params in wrong:
        assert (await old.error("tools/call", params))["code"] == -32602


# Refusals over HTTP


async def test_a_missing_scope_is_forbidden_and_says_which(kitchen: Kitchen, agent: Agent) -> None:
    reader = await kitchen.agent("read_jars", version=agent.version)

    response = await reader.ask("tools/call", {"name": "fill_jar", "arguments": {"jar_id": 1, "grams": 1}})

    assert response.status_code == 403
    body = response.json()
    assert (body["code"], body["scope"]) == ("insufficient_scope", "write_jars")
    assert response.headers["www-authenticate"] == (
        'Bearer realm="pantry", error="insufficient_scope", scope="write_jars",'
        ' resource_metadata="http://pantry.test/.well-known/oauth-protected-resource/mcp"'
    )
    assert (await agent.call("get_jar", jar_id=1))["structuredContent"]["content"] == 0


async def test_a_scope_that_an_operation_misses_is_forbidden_likewise(agent: Agent) -> None:
    response = await agent.ask("tools/call", {"name": "ask_for_more"})

    assert response.status_code == 403
    assert 'scope="own_pantry"' in response.headers["www-authenticate"]


async def test_calls_beyond_the_limit_are_told_when_to_come_again(pantry_url: str) -> None:
    async with opened(Pantry(pantry_url, per_hour=2)) as kitchen:
        agent, other = await kitchen.agent(), await kitchen.agent()
        for _ in range(2):
            await agent.call("add_numbers", a=1, b=1)

        response = await agent.ask("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 1}})

        assert response.status_code == 429
        assert response.json()["code"] == "rate_limited"
        assert int(response.headers["retry-after"]) == response.json()["retry_after"]
        await other.call("add_numbers", a=1, b=1)
        await agent.result("tools/list")


async def test_what_only_waiting_helps_with_is_told_over_http(agent: Agent) -> None:
    for name, status, seconds in (("hurry", 429, "7"), ("faint", 503, "3")):
        response = await agent.ask("tools/call", {"name": name})

        assert response.status_code == status
        assert response.headers["retry-after"] == seconds


async def test_a_fault_of_ours_is_logged_with_an_id_and_told_without_details(agent: Agent) -> None:
    with capture_logs() as logs:
        response = await agent.ask("tools/call", {"name": "break_shelf"})

    fault = error(response, 200)
    assert fault["code"] == -32603
    assert "secret" not in response.text
    (entry,) = (entry for entry in logs if entry["event"] == "request failed")
    assert entry["operation"] == "break_shelf"
    assert entry["request_id"] == fault["data"]["request_id"]


async def test_tools_are_counted_by_name_and_outcome(kitchen: Kitchen, agent: Agent) -> None:
    def count(name: str, status: str) -> float:
        return REGISTRY.get_sample_value("holdfast_requests_total", {"operation": name, "status": status}) or 0

    before = count("get_jar", "200"), count("get_jar", "404"), count("mcp", "401")
    await agent.call("get_jar", jar_id=1)
    await agent.call("get_jar", jar_id=99)
    await kitchen.stranger.ask("tools/list")

    assert (count("get_jar", "200"), count("get_jar", "404"), count("mcp", "401")) == tuple(n + 1 for n in before)


async def test_text_of_any_kind_survives(kitchen: Kitchen, agent: Agent) -> None:
    label = 'Ünïcode "quotes" \\ \n\t\x01 🫙 </script>'
    await kitchen.pantry.database.transact(
        lambda tx: tx.run("update jars set label = %(label)s where id = 1", {"label": label})
    )

    result = await agent.call("get_jar", jar_id=1)

    assert result["structuredContent"]["label"] == label
    assert json.loads(result["content"][0]["text"])["label"] == label
