"""Access to the MCP endpoint: keys, origins, and the form of answers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.kit.contract.problems import MISSING_API_KEY, Problem
from tests.helpers.agents import EVENTS, JSON, STATELESS, Agent, Header, Kitchen, begin_request, error_of, open_kitchen
from tests.helpers.cases import in_turn
from tests.kit.mcp.pantry import Pantry

METADATA = 'resource_metadata="http://pantry.test/.well-known/oauth-protected-resource/mcp"'

# Keys


async def test_a_call_without_a_key_is_answered_with_401(kitchen: Kitchen) -> None:
    for version in ("2025-03-26", "2025-11-25", STATELESS):
        stranger = Agent(kitchen.app, version=version)
        for method in ("initialize", "tools/list", "tools/call", "server/discover", "nothing"):
            response = await stranger.ask(method)

            assert response.status_code == 401
            assert response.json()["code"] == "missing_api_key"
            assert response.headers["www-authenticate"] == f'Bearer realm="pantry", scope="read_jars", {METADATA}'


async def test_a_call_with_an_invalid_key_is_answered_with_401(kitchen: Kitchen) -> None:
    for key in ("hf_" + "A" * 43, "nonsense", "é"):
        response = await Agent(kitchen.app, key).ask("tools/list")

        assert response.status_code == 401
        assert response.json()["code"] == "invalid_api_key"
        challenge = response.headers["www-authenticate"]
        assert challenge.startswith('Bearer realm="pantry", error="invalid_token", error_description="')
        assert challenge.endswith(f'scope="read_jars", {METADATA}')


async def test_a_challenge_without_an_authorization_server_names_none(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, resource_metadata=None)) as kitchen:
        response = await kitchen.stranger.ask("tools/list")

        assert response.headers["www-authenticate"] == 'Bearer realm="pantry", scope="read_jars"'


async def test_a_key_is_checked_before_the_body(kitchen: Kitchen) -> None:
    assert (await kitchen.stranger.post(b"{")).status_code == 401
    assert (await kitchen.stranger.post(b"", [(b"content-type", b"text/plain")])).status_code == 401


async def test_an_agent_may_send_its_key_in_either_header(old: Agent) -> None:
    assert old.key
    for header in ((b"x-api-key", old.key.encode()), (b"authorization", f"bearer  {old.key} ".encode())):
        assert (await old.post(old.request("ping"), [JSON, header])).status_code == 200


async def test_a_revoked_key_is_a_key_no_more(kitchen: Kitchen, old: Agent) -> None:
    await old.result("ping")

    await kitchen.revoke(old)

    assert (await old.ask("ping")).status_code == 401


async def test_a_key_never_travels_in_the_address(old: Agent) -> None:
    exchange = begin_request(old.app, "POST", [JSON], json.dumps(old.request("ping")).encode())

    assert (await exchange.response()).status_code == 401


async def test_a_service_may_have_its_own_envelope_of_errors(pantry_url: str) -> None:
    def brief(problem: Problem) -> dict[str, str]:
        return {"error": problem.code, "message": problem.message}

    pantry = Pantry(pantry_url)
    pantry.service = replace(pantry.service, error_body=brief)
    async with open_kitchen(pantry) as kitchen:
        assert (await kitchen.stranger.ask("ping")).json() == {
            "error": "missing_api_key",
            "message": MISSING_API_KEY.meaning,
        }


# Origins


@pytest.mark.parametrize(
    "origin",
    [b"http://evil.example", b"https://pantry.test", b"http://pantry.test.evil.example", b"null", b"", b"\xff"],
)
async def test_a_page_of_a_foreign_origin_cannot_call_the_endpoint(agent: Agent, origin: bytes) -> None:
    for method, headers in (("POST", agent.headers()), ("GET", agent.headers()), ("OPTIONS", [])):
        response = await begin_request(agent.app, method, [*headers, (b"origin", origin)]).response()

        assert response.status_code == 403
        assert response.json()["code"] == "forbidden"
        assert "access-control-allow-origin" not in response.headers


async def test_a_page_of_the_service_can_call_the_endpoint(agent: Agent) -> None:
    message = agent.request("tools/list")

    response = await agent.post(message, [*agent.headers(message), (b"origin", b"http://pantry.test")])

    assert response.status_code == 200
    assert "access-control-allow-origin" not in response.headers


async def test_a_page_of_an_allowed_origin_can_call_the_endpoint_and_read_the_answer(
    kitchen: Kitchen, agent: Agent
) -> None:
    message = agent.request("tools/list")
    for caller, status in ((agent, 200), (kitchen.stranger, 401)):
        response = await caller.post(message, [*caller.headers(message), (b"origin", b"https://friend.example")])

        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == "https://friend.example"
        assert response.headers["vary"] == "origin"


async def test_a_preflight_request_of_an_allowed_origin_is_answered(kitchen: Kitchen) -> None:
    response = await begin_request(kitchen.app, "OPTIONS", [(b"origin", b"https://friend.example")]).response()

    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-methods"] == "GET, POST"
    assert {"authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"} <= set(
        response.headers["access-control-allow-headers"].split(", ")
    )


# Methods of HTTP


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "post"])
async def test_a_method_that_is_not_supported_is_answered_with_405_and_allow(
    old: Agent, new_agent: Agent, method: str
) -> None:
    for agent, allow in ((old, "GET, POST"), (new_agent, "POST")):
        response = await begin_request(agent.app, method, agent.headers()).response()

        assert response.status_code == 405
        assert response.headers["allow"] == allow


async def test_a_get_in_the_era_of_2026_is_answered_with_405(new_agent: Agent) -> None:
    response = await begin_request(new_agent.app, "GET", new_agent.headers()).response()

    assert (response.status_code, response.headers["allow"]) == (405, "POST")


async def test_a_silent_service_has_no_stream_to_get(pantry_url: str) -> None:
    async with open_kitchen(Pantry(pantry_url, silent=True)) as kitchen:
        agent = await kitchen.agent("read_jars")
        response = await begin_request(kitchen.app, "GET", agent.headers()).response()

        assert (response.status_code, response.headers["allow"]) == (405, "POST")
        introduction = await agent.result("initialize", {"protocolVersion": "2025-11-25"})
        assert introduction["capabilities"] == {"tools": {}, "resources": {}}
        assert (await agent.error("resources/subscribe", {"uri": "jar://1"}))["code"] == -32601
        agent.version = STATELESS
        assert (await agent.error("subscriptions/listen", {"notifications": {}}, status=404))["code"] == -32601


# Types and sizes


def headers_accepting(agent: Agent, message: dict[str, Any], *accept: Header) -> Sequence[Header]:
    return [*(header for header in agent.headers(message) if header[0] != b"accept"), *accept]


@in_turn(
    "accept",
    [
        None,
        b"*/*",
        b"application/json",
        b"application/*",
        b"text/html, */*;q=0.1",
        b"Application/JSON",
        b"text/event-stream;q=0, application/json",
        b"application/json;q=0.05",
        b"application/*;q=0, application/json",
    ],
)
async def test_a_client_that_accepts_json_gets_json(agent: Agent, accept: bytes | None) -> None:
    message = agent.request("tools/list")
    headers = headers_accepting(agent, message, *([(b"accept", accept)] if accept is not None else []))

    response = await agent.post(message, headers)

    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"


async def test_a_client_that_accepts_events_only_gets_the_answer_as_one_event(agent: Agent) -> None:
    message = agent.request("tools/call", {"name": "get_jar", "arguments": {"jar_id": 1}})

    response = await agent.post(message, headers_accepting(agent, message, EVENTS))

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    data, rest = response.text.removeprefix("data: ").split("\n", 1)
    assert rest == "\n"
    assert json.loads(data)["result"]["structuredContent"]["id"] == 1


async def test_a_refusal_is_json_even_for_a_client_that_accepts_events_only(agent: Agent) -> None:
    response = await agent.post(b"{", [JSON, EVENTS, (b"authorization", f"Bearer {agent.key}".encode())])

    assert error_of(response, 400)["code"] == -32700


async def test_a_notification_is_accepted_even_from_a_client_that_accepts_events_only(agent: Agent) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}

    response = await agent.post(message, headers_accepting(agent, message, EVENTS))

    assert (response.status_code, response.content) == (202, b"")


async def test_a_client_that_accepts_neither_json_nor_events_is_answered_with_406(agent: Agent) -> None:
    message = agent.request("tools/list")
    refused_types = (b"application/json;q=0", b"application/json ; Q=0.0, text/event-stream;q=0.000", b"*/*;q=0")
    for accept in (b"text/html", b"image/*", b"", *refused_types):
        response = await agent.post(message, headers_accepting(agent, message, (b"accept", accept)))

        assert response.status_code == 406
        assert response.json()["code"] == "not_acceptable"


async def test_a_body_without_the_content_type_json_is_refused(agent: Agent) -> None:
    message = agent.request("tools/list")
    rest = [header for header in agent.headers(message) if header != JSON]
    for kind in (b"text/plain", b"application/x-www-form-urlencoded", b"application/jsonp", b""):
        response = await agent.post(message, [*rest, (b"content-type", kind)])

        assert response.status_code == 415
        assert response.json()["code"] == "unsupported_media_type"
    for kind in (b"application/json; charset=utf-8", b"Application/JSON"):
        assert (await agent.post(message, [*rest, (b"content-type", kind)])).status_code == 200


async def test_a_body_of_more_than_a_mebibyte_is_refused(old: Agent) -> None:
    message = json.dumps(old.request("ping", {"padding": ""})).encode()
    largest = message.replace(b'""', b'"' + b"x" * (2**20 - len(message)) + b'"')

    assert len(largest) == 2**20
    assert (await old.post(largest)).status_code == 200
    response = await old.post(largest + b" ")
    assert response.status_code == 413
    assert response.json()["code"] == "payload_too_large"
