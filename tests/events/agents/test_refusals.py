"""Refusals for agents: from the tool where a model can act on them, otherwise from HTTP; in both eras."""

from typing import Any

from mcp_types.methods import validate_server_result

from holdfast.events.settings import Settings
from tests.events.agents.samples import ANN, ARGUMENTS, agent, both_eras, prepare_organizer
from tests.helpers.agents import Agent, problem_of
from tests.helpers.cases import in_turn
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.stored_rows import read_all_rows


@both_eras
async def test_a_refusal_says_what_to_do_next(service: Service, ada: Client, version: str) -> None:
    asking = agent(service, ada, version)
    await asking.call("update_event", event_id=1, capacity=1)
    refusals: dict[str, tuple[str, dict[str, Any]]] = {
        "not_found": ("get_event", {"event_id": 99}),
        "forbidden": ("create_event", {**ARGUMENTS["create_event"], "organizer_id": 99}),
        "validation_failed": ("update_event", {"event_id": 2, "currency": "EUR", "colour": "red"}),
        "event_full": ("create_registration", {"event_id": 1, "email": "ben@example.com"}),
    }
    before = await read_all_rows(service.run_sql)

    for code, (tool, arguments) in refusals.items():
        result = await asking.call(tool, **arguments)
        validate_server_result("tools/call", version, result)
        problem = problem_of(result)
        assert (problem["code"], problem["retryable"]) == (code, False)
        assert problem["message"]
        assert problem["hint"]
    assert await read_all_rows(service.run_sql) == before


async def test_every_error_of_a_call_is_named_at_once(service: Service, ada: Client) -> None:
    result = await agent(service, ada).call("create_event", title="", price="free", colour="red")

    assert problem_of(result)["errors"].keys() == {"title", "body", "datetime", "price", "capacity", "colour"}


@both_eras
@in_turn("key", [None, "nonsense", "hf_" + "A" * 43])
async def test_a_call_without_a_valid_key_is_answered_with_401(
    service: Service, ada: Client, version: str, key: str | None
) -> None:
    stranger = Agent(service.app, key, version)

    for response in (
        await stranger.ask("tools/list"),
        await stranger.ask("tools/call", {"name": "list_events", "arguments": {}}),
    ):
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer ")
        body = response.json()
        assert body["code"] == ("missing_api_key" if key is None else "invalid_api_key")
        assert body["error"]
        assert body["hint"]


@both_eras
async def test_a_revoked_key_is_refused_at_once(service: Service, ada: Client, version: str) -> None:
    asking = agent(service, ada, version)

    await asking.call("revoke_api_key", id=1)

    assert (await asking.ask("tools/list")).status_code == 401


@both_eras
async def test_an_agent_may_send_its_key_in_either_header(service: Service, ada: Client, version: str) -> None:
    asking = agent(service, ada, version)
    message = asking.request("tools/call", {"name": "list_events", "arguments": {}})
    headers = [(name, value) for name, value in asking.headers(message) if name != b"authorization"]
    assert ada.key
    key = ada.key.encode()

    for header in ((b"x-api-key", key), (b"authorization", b"Bearer " + key), (b"authorization", b"bearer " + key)):
        response = await asking.post(message, [*headers, header])
        assert response.status_code == 200
        assert len(response.json()["result"]["structuredContent"]["data"]) == 2
    assert (await asking.post(message, headers)).status_code == 401


@both_eras
@in_turn("method", ["GET", "DELETE", "PUT", "PATCH"])
async def test_the_agent_endpoint_allows_post_only(service: Service, ada: Client, method: str, version: str) -> None:
    headers = {"accept": "text/event-stream", "mcp-protocol-version": version}

    response = await ada.request(method, "/mcp", headers=headers)

    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.json()["code"] == "method_not_allowed"


# The limit on registrations


@both_eras
async def test_registrations_over_rest_and_mcp_count_towards_one_limit(settings: Settings, version: str) -> None:
    async with running_events(settings.model_copy(update={"registrations_per_minute": 4})) as service:
        ada = await prepare_organizer(service)  # registers one
        asking = agent(service, ada, version)
        await ada.register(1, email="ben@example.com")
        await asking.call("create_registration", event_id=1, email="cal@example.com")
        await asking.call("create_registration", event_id=1, email="cal@example.com")
        before = await read_all_rows(service.run_sql)
        arguments = {"event_id": 1, "email": "dee@example.com"}

        refusals = [
            await asking.ask("tools/call", {"name": "create_registration", "arguments": arguments}),
            await ada.post("/api/registrations", {"registration": arguments}),
        ]

        for response in refusals:
            assert (response.status_code, response.json()["code"]) == (429, "rate_limited")
            assert 1 <= int(response.headers["retry-after"]) == response.json()["retry_after"] <= 60
        assert await read_all_rows(service.run_sql) == before
        assert (await asking.call("get_registration", event_id=1, user_id=ANN))["isError"] is False
        spare = Agent(service.app, (await asking.call("create_api_key", name="Spare"))["structuredContent"]["key"])
        await spare.call("create_registration", **arguments)


async def test_a_batch_of_registrations_is_counted_one_by_one(settings: Settings) -> None:
    async with running_events(settings.model_copy(update={"registrations_per_minute": 2})) as service:
        ada = await prepare_organizer(service)
        asking = agent(service, ada, "2025-03-26")
        calls = [
            asking.request("tools/call", {"name": "create_registration", "arguments": {"event_id": 1, "email": email}})
            for email in ("ben@example.com", "cal@example.com")
        ]
        before = await read_all_rows(service.run_sql)

        response = await asking.post(calls)

        assert response.status_code == 429
        assert await read_all_rows(service.run_sql) == before
