"""Messages of JSON-RPC: sound ones, notifications, and everything that is neither."""

import json
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.helpers.agents import STATELESS, Agent, Kitchen, error_of
from tests.helpers.cases import in_turn

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@in_turn("id", [0, 1, -1, 2**63, -(2**64), 10**400, 1.0, 1e300, "", "a", "☃", "\x00", "x" * 10_000])
async def test_an_id_comes_back_as_it_was(agent: Agent, id: float | str) -> None:
    response = await agent.post(agent.request("tools/list", id=id))

    assert response.status_code == 200
    assert f'"id":{json.dumps(id)},' in response.text
    assert response.json()["id"] == id
    assert type(response.json()["id"]) is type(id)


async def test_a_null_id_is_accepted_in_the_handshake_era(old: Agent) -> None:
    response = await old.post({**PING, "id": None})

    assert response.json() == {"jsonrpc": "2.0", "id": None, "result": {}}


async def test_a_null_id_is_refused_in_2026(new_agent: Agent) -> None:
    response = await new_agent.post(new_agent.request("tools/list", id=None))

    assert error_of(response, 400)["code"] == -32600


@pytest.mark.parametrize("id", [1.5, 1e-7, True, False, [], [1], {}])
async def test_an_id_that_is_no_string_or_integer_is_refused(agent: Agent, id: Any) -> None:
    response = await agent.post(agent.request("tools/list", id=id))

    assert error_of(response, 400)["code"] == -32600
    assert "must be a string, an integer" in error_of(response, 400)["message"]
    assert response.json()["id"] is None


async def test_a_call_without_an_id_is_answered_in_the_handshake_era(old: Agent) -> None:
    """Before, such a call was dropped with 202, and its caller believed that it was done."""
    message = old.request("tools/call", {"name": "fill_jar", "arguments": {"jar_id": 1, "grams": 7}})
    del message["id"]
    response = await old.post(message)

    assert response.status_code == 200
    assert response.json()["id"] is None
    assert response.json()["result"]["structuredContent"]["content"] == 7


async def test_a_call_without_an_id_is_refused_and_not_done_in_2026(new_agent: Agent) -> None:
    message = new_agent.request("tools/call", {"name": "fill_jar", "arguments": {"jar_id": 1, "grams": 7}})
    del message["id"]
    fault = error_of(await new_agent.post(message), 400)

    assert fault["code"] == -32600
    assert "`id`" in fault["message"]
    jar = await new_agent.call("get_jar", jar_id=1)
    assert jar["structuredContent"]["content"] != 7


async def test_params_may_be_null(old: Agent) -> None:
    assert (await old.post({**PING, "params": None})).status_code == 200


@pytest.mark.parametrize("params", [[], [1], "x", 5, True])
async def test_params_are_an_object(old: Agent, new_agent: Agent, params: Any) -> None:
    assert error_of(await old.post({**PING, "params": params}), 200)["code"] == -32602
    response = await new_agent.post({**PING, "method": "tools/list", "params": params}, Agent.headers(new_agent))
    assert error_of(response, 400)["code"] == -32602
    assert response.json()["id"] == 1


@in_turn(
    "message",
    [
        {},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"},
        {"id": 1, "method": "ping"},
        {"method": "ping"},
        {"jsonrpc": "2.0", "method": 5},
        {"params": 5, "jsonrpc": "2.0"},
        {"params": 5, "jsonrpc": "2.0", "method": 5},
        {"params": 5, "jsonrpc": "2.0", "id": 1},
        {"params": 5, "method": "ping"},
        None,
        True,
        5,
        "ping",
    ],
)
async def test_a_json_value_that_is_no_message_is_an_invalid_request(agent: Agent, message: Any) -> None:
    response = await agent.post(json.dumps(message).encode())

    assert error_of(response, 400)["code"] == -32600
    assert response.json()["id"] == (1 if "'id': 1" in str(message) else None)


@in_turn(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"[",
        b"ping",
        b"{'jsonrpc': '2.0'}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":01,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"\x01","method":"ping"}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"nobody":"reads \xff this"}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":' + b"[" * 300_000 + b"]" * 300_000 + b"}}",
        b"[" * 500_000,
        b'{"id":' * 100_000,
        b"\x00",
    ],
)
async def test_a_body_that_is_no_json_is_a_parse_error(agent: Agent, body: bytes) -> None:
    response = await agent.post(body)

    assert error_of(response, 400)["code"] == -32700
    assert response.json()["id"] is None


@pytest.mark.parametrize(
    "arguments",
    [b'{"a":1,"b":2', b'{"a":\xff}', b'{"a":"\\ud800"}', b'{"a":1e999,"b":1}', b"[" * 990 + b"]" * 990, b"9" * 5000],
)
async def test_arguments_that_are_no_json_do_no_harm(agent: Agent, arguments: bytes) -> None:
    body = agent.request("tools/call", {"name": "add_numbers", "arguments": "HERE"})
    content = json.dumps(body).encode().replace(b'"HERE"', arguments)

    response = await agent.post(content, agent.headers(body))

    assert error_of(response, 400 if agent.version == STATELESS else response.status_code)["code"] in {-32700, -32602}
    assert response.status_code in {200, 400}


async def test_the_last_of_two_equal_members_of_a_message_counts(old: Agent) -> None:
    response = await old.post(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"nothing","method":"ping"}')

    assert response.json() == {"jsonrpc": "2.0", "id": 2, "result": {}}


async def test_an_unknown_method_is_not_found(old: Agent, new_agent: Agent) -> None:
    assert (await old.error("tools/burn"))["code"] == -32601
    assert (await old.error("server/discover"))["code"] == -32601
    for method in ("tools/burn", "initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list", ""):
        assert (await new_agent.error(method, status=404))["code"] == -32601


# What wants no answer


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "bored"}},
        {"jsonrpc": "2.0", "method": "notifications/made/up", "params": [1, 2]},
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {"name": 5, "_meta": 3}},
    ],
)
async def test_a_notification_is_answered_with_202_and_no_content(agent: Agent, message: Any) -> None:
    response = await agent.post(message)

    assert (response.status_code, response.content) == (202, b"")
    assert response.headers["content-length"] == "0"
    assert "content-type" not in response.headers


async def test_a_posted_response_is_accepted_in_the_handshake_era_and_refused_in_2026(
    old: Agent, new_agent: Agent
) -> None:
    for body in (b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}'):
        assert ((await old.post(body)).status_code, (await old.post(body)).content) == (202, b"")
        assert error_of(await new_agent.post(body), 400)["code"] == -32600


# Anything at all

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    [
        *("initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list"),
        *("resources/read", "resources/subscribe", "server/discover", "subscriptions/listen"),
    ]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": ANYTHING | st.sampled_from(["add_numbers", "fill_jar", "plan_window"]),
        "arguments": ANYTHING
        | st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("a", "b", "jar_id", "grams", "note", "opens_at", "closes_at"), ANYTHING)
        ),
        "uri": ANYTHING | st.sampled_from(["jar://1", "jar://x", "jar://%00", "pantry://rules"]),
        "cursor": ANYTHING,
        "protocolVersion": ANYTHING,
        "_meta": ANYTHING,
    },
)
MESSAGE = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": METHODS | st.text()},
    optional={"id": ANYTHING | st.integers(0, 9), "params": PARAMS | ANYTHING},
)
ALMOST = st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), ANYTHING)


def check_sound(response: httpx2.Response) -> None:
    """Nothing unexpected happened, whatever was answered."""
    assert response.status_code < 500
    assert '"code":-32603' not in response.text


QUIETLY = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)


@QUIETLY
@given(body=MESSAGE | ALMOST | st.lists(MESSAGE | ALMOST | ANYTHING, max_size=5) | ANYTHING)
@example(body={"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "jar://%ff"}})
@example(body={"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"cursor": "99999999999999999999"}})
async def test_no_message_makes_the_service_fail(kitchen: Kitchen, body: Any) -> None:
    agent = await kitchen.agent("read_jars", "write_jars")
    for version in ("2025-03-26", "2025-11-25"):
        agent.version = version
        check_sound(await agent.post(json.dumps(body).encode()))


@QUIETLY
@given(method=METHODS, params=PARAMS, id=st.integers() | st.text())
async def test_no_request_of_2026_makes_the_service_fail(
    kitchen: Kitchen, method: str, params: dict[str, Any], id: int | str
) -> None:
    agent = await kitchen.agent("read_jars", "write_jars", version=STATELESS)
    params.pop("_meta", None)
    message = agent.request(method, params, id=id)
    check_sound(await agent.post(message))


@QUIETLY
@given(body=st.binary())
async def test_no_bytes_make_the_service_fail(kitchen: Kitchen, body: bytes) -> None:
    agent = await kitchen.agent()
    assert (await agent.post(body)).status_code == 400
