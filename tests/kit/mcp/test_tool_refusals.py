"""Calls that are refused: as a result where a model can do better, over HTTP where its program must act."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.helpers.agents import Agent, Kitchen, error_of, open_kitchen, problem_of
from tests.kit.mcp.pantry import Pantry

# Refusals that models read


async def test_every_unacceptable_argument_is_named(agent: Agent) -> None:
    problem = problem_of(await agent.call("fill_jar", jar_id=0, grams="much", spoon=1))

    assert problem["code"] == "validation_failed"
    assert problem["retryable"] is False
    assert problem["hint"]
    assert problem["errors"] == {
        "jar_id": ["must be at least 1, not 0"],
        "grams": ['must be an integer, not "much"'],
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
async def test_an_invalid_argument_is_a_result_with_an_error(
    agent: Agent, arguments: dict[str, Any], field: str
) -> None:
    assert field in problem_of(await agent.call("fill_jar", **arguments))["errors"]


async def test_a_refusal_of_an_operation_is_a_result_with_all_it_says(agent: Agent) -> None:
    assert problem_of(await agent.call("fill_jar", jar_id=1, grams=101)) == {
        "code": "jar_full",
        "message": "101 g do not fit.",
        "hint": "Put in less, or empty the jar first.",
        "retryable": False,
        "room": 100,
    }
    assert problem_of(await agent.call("get_jar", jar_id=99))["code"] == "not_found"


async def test_an_unknown_tool_is_an_error_of_the_protocol(old: Agent, new_agent: Agent) -> None:
    for name in ("nothing", "hidden", "", "add_numbers ", "ADD_NUMBERS"):
        assert (await old.error("tools/call", {"name": name}))["code"] == -32602
    assert (await new_agent.error("tools/call", {"name": "nothing"}, status=400))["code"] == -32602


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


async def test_a_scope_missing_inside_an_operation_is_answered_with_403_too(agent: Agent) -> None:
    response = await agent.ask("tools/call", {"name": "ask_for_more"})

    assert response.status_code == 403
    assert 'scope="own_pantry"' in response.headers["www-authenticate"]


async def test_a_call_beyond_the_limit_is_answered_with_retry_after(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, per_hour=2)) as kitchen:
        agent, other = await kitchen.agent(), await kitchen.agent()
        for _ in range(2):
            await agent.call("add_numbers", a=1, b=1)

        response = await agent.ask("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 1}})

        assert response.status_code == 429
        assert response.json()["code"] == "rate_limited"
        assert int(response.headers["retry-after"]) == response.json()["retry_after"]
        await other.call("add_numbers", a=1, b=1)


async def test_a_refusal_that_only_waiting_helps_is_an_http_status_with_retry_after(agent: Agent) -> None:
    for name, status, seconds in (("hurry", 429, "7"), ("faint", 503, "3")):
        response = await agent.ask("tools/call", {"name": name})

        assert response.status_code == status
        assert response.headers["retry-after"] == seconds


async def test_an_unexpected_failure_is_logged_with_an_id_and_answered_without_details(agent: Agent) -> None:
    with capture_logs() as logs:
        response = await agent.ask("tools/call", {"name": "break_shelf"})

    fault = error_of(response, 200)
    assert fault["code"] == -32603
    assert "secret" not in response.text
    (entry,) = (entry for entry in logs if entry["event"] == "request failed")
    assert entry["operation"] == "break_shelf"
    assert entry["request_id"] == fault["data"]["request_id"]
