"""The tools of the MCP endpoint are those of the table, and answer what REST answers, in both eras."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types import CallToolResult, ListToolsResult
from mcp_types.methods import validate_server_result

from holdfast.events.oauth.model import SCOPES
from holdfast.kit.mcp.tools import definition
from tests.events.agents.documents import fits
from tests.events.agents.samples import ANN, ARGUMENTS, ERAS, TOOLS, agent, both_eras
from tests.helpers.agents import Agent, problem_of
from tests.helpers.events_service import Client, Service
from tests.helpers.stored_rows import read_all_rows

every_tool = pytest.mark.parametrize("tool", TOOLS)


async def list_tools(asking: Agent) -> list[dict[str, Any]]:
    return (await asking.result("tools/list"))["tools"]


# The list


@both_eras
async def test_the_tools_are_those_of_the_table_in_its_order(service: Service, ada: Client, version: str) -> None:
    result = await agent(service, ada, version).result("tools/list")

    assert [tool["name"] for tool in result["tools"]] == [*TOOLS]
    validate_server_result("tools/list", version, result)
    assert len(ListToolsResult.model_validate(result).tools) == len(TOOLS)


async def test_both_protocol_versions_list_the_same_tools(service: Service, ada: Client) -> None:
    older, newer = [await list_tools(agent(service, ada, version)) for version in ERAS]

    assert older == newer


async def test_a_tool_has_a_name_that_every_client_takes(service: Service, ada: Client) -> None:
    for tool in await list_tools(agent(service, ada)):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", tool["name"])
        assert len(tool["name"]) <= 64
        assert tool["annotations"]["title"]
        assert tool["description"].startswith(" ".join(TOOLS[tool["name"]].description.split()))


ADDING = {
    "create_event",
    "create_api_key",
    "add_event_photo",
    "presign_upload",
    "create_onboarding_link",
    "create_queue",
    "set_webhook",
    "ping_webhook",
    "resend_webhook_messages",
}
"""Called again, these add something once more."""


async def test_a_tool_says_what_it_does_to_the_world(service: Service, ada: Client) -> None:
    """The hints that have a meaning for its method; two reach out of the service, for a picture and for payouts."""
    for tool in await list_tools(agent(service, ada)):
        operation, hints = TOOLS[tool["name"]], tool["annotations"]
        assert hints["readOnlyHint"] is operation.mode.reads
        assert not operation.route or operation.mode.reads is (operation.method == "GET")
        if hints["readOnlyHint"]:
            assert hints.keys() == {"title", "readOnlyHint", "openWorldHint"}
        else:
            assert hints.keys() - {"idempotentHint"} == {"title", "readOnlyHint", "destructiveHint", "openWorldHint"}
            destructive = operation.method in {"PATCH", "DELETE"} or tool["name"] in {"set_webhook", "delete_webhook"}
            assert hints["destructiveHint"] is destructive
            assert hints.get("idempotentHint", False) is (tool["name"] not in ADDING)
        assert hints["openWorldHint"] is (tool["name"] in {"add_event_photo", "create_onboarding_link"})


async def test_a_tool_takes_an_object_whose_every_member_is_explained(
    service: Service, ada: Client, subtests: pytest.Subtests
) -> None:
    """In the tool itself, or in the same words in an earlier one."""
    earlier: set[tuple[str, str]] = set()
    for tool in await list_tools(agent(service, ada)):
        with subtests.test(tool=tool["name"]):
            schema = tool["inputSchema"]
            Draft202012Validator.check_schema(schema)
            assert (schema["type"], schema["additionalProperties"]) == ("object", False)
            fields = TOOLS[tool["name"]].command.__struct_fields__
            assert [name for name in schema["properties"] if name != "clear"] == [*fields]
            in_full = definition(TOOLS[tool["name"]])["inputSchema"]["properties"]
            meanings = {name: (name, field["description"]) for name, field in in_full.items()}
            for name, field in schema["properties"].items():
                assert field.get("description") or meanings[name] in earlier
            earlier.update(meanings.values())


async def test_a_tool_answers_with_an_object(service: Service, ada: Client, subtests: pytest.Subtests) -> None:
    for tool in await list_tools(agent(service, ada)):
        with subtests.test(tool=tool["name"]):
            Draft202012Validator.check_schema(tool["outputSchema"])
            assert tool["outputSchema"]["type"] == "object"
            assert all(ref.startswith("#/$defs/") for ref in re.findall(r'"\$ref": "([^"]*)"', json.dumps(tool)))


async def test_the_instructions_for_agents_are_short_and_name_only_tools_that_exist(
    service: Service, ada: Client
) -> None:
    problem_of = await agent(service, ada).result("initialize", {"protocolVersion": ERAS[0], "capabilities": {}})

    verbs = "|".join({name.partition("_")[0] for name in TOOLS})
    named = set(re.findall(rf"\b(?:{verbs})_\w+", problem_of["instructions"]))
    assert {"create_event", "create_registration", "get_registration"} <= named <= TOOLS.keys()
    assert len(problem_of["instructions"]) <= 1500


def test_every_tool_needs_a_scope_that_an_access_token_can_have() -> None:
    assert {operation.scope for operation in TOOLS.values()} == set(SCOPES)
    assert {operation.name for operation in TOOLS.values() if operation.scope == "read_events"} == {
        operation.name
        for operation in TOOLS.values()
        if operation.mode.reads and operation.noun not in {"keys", "webhooks"}
    }


# Calls


def test_every_tool_has_sample_arguments() -> None:
    assert ARGUMENTS.keys() == TOOLS.keys(), "ARGUMENTS in samples.py"


async def test_a_field_of_an_event_is_cleared_by_its_name(service: Service, ada: Client) -> None:
    asking = agent(service, ada)
    stored = await asking.call("update_event", event_id=2, address="Ferry Lane 4", location_name="Studio")
    assert stored["structuredContent"]["address"] == "Ferry Lane 4"

    emptied = (await asking.call("update_event", event_id=2, clear=["address"]))["structuredContent"]
    assert (emptied["address"], emptied["location_name"]) == (None, "Studio")


async def test_instructions_are_the_same_in_both_eras(service: Service, ada: Client) -> None:
    older = await agent(service, ada).result("initialize", {"protocolVersion": ERAS[0], "capabilities": {}})
    newer = await agent(service, ada, ERAS[1]).result("server/discover")

    assert older["instructions"] == newer["instructions"]


@both_eras
@every_tool
async def test_an_answer_is_what_the_tool_promises(service: Service, ada: Client, tool: str, version: str) -> None:
    asking = agent(service, ada, version)
    (listed_tool,) = (entry for entry in await list_tools(asking) if entry["name"] == tool)
    fits(ARGUMENTS[tool], listed_tool["inputSchema"])

    result = await asking.call(tool, **ARGUMENTS[tool])

    fits(result["structuredContent"], listed_tool["outputSchema"])
    assert [json.loads(content["text"]) for content in result["content"]] == [result["structuredContent"]]
    assert result["isError"] is False
    validate_server_result("tools/call", version, result)
    assert CallToolResult.model_validate(result).structured_content == result["structuredContent"]


@every_tool
async def test_only_a_tool_that_says_so_changes_something(service: Service, ada: Client, tool: str) -> None:
    before = await read_all_rows(service.run_sql)

    await agent(service, ada).call(tool, **ARGUMENTS[tool])

    assert (await read_all_rows(service.run_sql) == before) is TOOLS[tool].mode.reads


IDEMPOTENT = [name for name, operation in TOOLS.items() if operation.tool and operation.tool.idempotent]


@pytest.mark.parametrize("tool", IDEMPOTENT)
async def test_a_tool_that_says_so_may_be_called_again(service: Service, ada: Client, tool: str) -> None:
    asking = agent(service, ada)
    await asking.call(tool, **ARGUMENTS[tool])
    before = [rows(table) for table in (await read_all_rows(service.run_sql)).values()]

    # What is gone is not found any more.
    again = await asking.call(tool, **ARGUMENTS[tool])

    assert again["isError"] is (tool in {"delete_registration", "delete_queue", "delete_webhook", "remove_event_photo"})
    assert [rows(table) for table in (await read_all_rows(service.run_sql)).values()] == before


def rows(stored: list[tuple[str, str]]) -> list[str]:
    """What is stored, whoever wrote it."""
    return [row for row, _ in stored]


REST = {
    "get_event": "/api/events/1",
    "get_registration": f"/api/registrations/1/{ANN}",
    "list_api_keys": "/api/keys",
    "get_price_history": "/api/events/2/price_history",
    "list_webhooks": "/api/webhook_endpoints",
    "list_webhook_deliveries": "/api/webhook_endpoints/1/deliveries?status=waiting&limit=20",
    "list_webhook_attempts": "/api/webhook_endpoints/1/messages/msg_1/attempts",
    "list_events": "/api/events?offset=1&limit=20",
    "list_users": "/api/users?limit=1",
    "list_organizers": "/api/organizers?limit=20",
    "list_registrations": "/api/registrations?limit=20",
    "list_queues": "/api/queues?limit=1",
    "get_queue": "/api/queues/1",
}


@both_eras
@pytest.mark.parametrize("tool", REST)
async def test_a_tool_answers_what_rest_answers(service: Service, ada: Client, tool: str, version: str) -> None:
    answer = (await agent(service, ada, version).call(tool, **ARGUMENTS[tool]))["structuredContent"]
    body = (await ada.get(REST[tool])).json()

    assert answer == (body["data"] if tool in {"get_event", "get_registration", "get_queue"} else body)
    if tool in {"list_api_keys", "get_price_history", "list_webhooks"}:
        assert answer.keys() == {"data"}
        assert len(answer["data"]) > 0


LISTS = ["list_events", "list_users", "list_organizers", "list_registrations", "list_queues"]


@pytest.mark.parametrize("tool", LISTS)
async def test_a_list_has_20_items_unless_an_agent_asks_for_more(service: Service, ada: Client, tool: str) -> None:
    asking = agent(service, ada)
    for arguments, limit in (({}, 20), ({"limit": 100}, 100)):
        page = (await asking.call(tool, **arguments))["structuredContent"]

        assert page["pagination"]["limit"] == limit
    assert definition(TOOLS[tool])["inputSchema"]["properties"]["limit"]["default"] == 20


@pytest.mark.parametrize("tool", LISTS)
async def test_a_list_over_rest_has_100_items_as_the_contract_says(ada: Client, tool: str) -> None:
    page = (await ada.get(TOOLS[tool].path)).json()

    assert page["pagination"]["limit"] == 100


def test_every_tool_that_reads_is_compared_with_rest() -> None:
    assert REST.keys() == {name for name, operation in TOOLS.items() if operation.mode.reads}, "REST in this file"


@both_eras
async def test_a_registration_is_the_same_over_rest_and_mcp(service: Service, ada: Client, version: str) -> None:
    asking = agent(service, ada, version)
    poll = await ada.register(1, email="ben@example.com")
    before = await read_all_rows(service.run_sql)

    result = await asking.call("create_registration", event_id=1, email="BEN@example.com")
    assert result["structuredContent"]["next"]["url"] == poll
    assert await read_all_rows(service.run_sql) == before
    waiting = problem_of(await asking.call("get_registration", event_id=1, user_id=poll[-8:]))
    assert (waiting["code"], waiting["retryable"], waiting["retry_after"]) == ("registration_pending", True, 1)
    await service.settle()
    settled = await asking.call("get_registration", event_id=1, user_id=poll[-8:])
    assert settled["structuredContent"] == (await ada.get(poll)).json()["data"]


async def test_a_tool_says_which_refusals_to_expect(service: Service, ada: Client) -> None:
    descriptions = {tool["name"]: tool["description"] for tool in await list_tools(agent(service, ada))}

    assert descriptions["create_registration"].endswith(
        " Errors: event_cancelled, event_expired, event_full, queue_required."
    )
    for tool in ("list_events", "get_event", "get_registration"):  # the instructions and the description have them
        assert "Errors:" not in descriptions[tool]
