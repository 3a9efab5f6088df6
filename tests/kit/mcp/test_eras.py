"""The era of an MCP request, and the headers that each demands."""

import base64
from typing import Any

import pytest

from tests.helpers.agents import BOTH, JSON, META, STATELESS, Agent, Header, Kitchen, error_of

PROTOCOL = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def plain(agent: Agent, *headers: Header) -> list[Header]:
    """The headers of a client that names no version."""
    return [JSON, BOTH, (b"authorization", f"Bearer {agent.key}".encode()), *headers]


def stateless(agent: Agent, method: str = "tools/list", subject: str | None = None, **others: str) -> list[Header]:
    """The headers of 2026-07-28, changed by `others`."""
    named = {"mcp-protocol-version": STATELESS, "mcp-method": method}
    named |= {"mcp-name": subject} if subject is not None else {}
    named |= {name.replace("_", "-"): value for name, value in others.items()}
    return plain(agent, *((name.encode(), value.encode("latin-1")) for name, value in named.items()))


# The handshake


@pytest.mark.parametrize("version", HANDSHAKES)
async def test_a_client_is_answered_in_the_version_it_asks_for(old: Agent, version: str) -> None:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}

    response, another = [await old.post(old.request("initialize", params), plain(old)) for _ in range(2)]

    assert response.headers["mcp-session-id"] != another.headers["mcp-session-id"]
    assert response.json()["result"] == {
        "protocolVersion": version,
        "capabilities": {"tools": {}, "resources": {"subscribe": True, "listChanged": True}},
        "serverInfo": {"name": "pantry", "title": "Pantry", "version": "1.0.0"},
        "instructions": "List the jars before you fill one.",
    }


@pytest.mark.parametrize("version", ["2026-07-28", "2099-01-01", "1900-01-01", "", "newest", "\x00"])
async def test_a_version_without_a_handshake_is_answered_with_the_newest_that_has_one(old: Agent, version: str) -> None:
    response = await old.post(old.request("initialize", {"protocolVersion": version}), plain(old))

    assert response.json()["result"]["protocolVersion"] == "2025-11-25"


async def test_an_initialize_request_without_a_version_is_refused(old: Agent) -> None:
    for params in ({}, {"protocolVersion": None}, {"protocolVersion": 5}):
        assert (await old.error("initialize", params))["code"] == -32602


async def test_a_session_id_that_was_made_up_is_ignored(old: Agent) -> None:
    assert await old.result("ping") == {}
    headers = plain(old, (b"mcp-session-id", b"made-up"), (b"mcp-protocol-version", b"2025-06-18"))
    response = await old.post(old.request("tools/list"), headers)
    assert response.status_code == 200
    assert "mcp-session-id" not in response.headers


async def test_a_request_without_a_version_is_of_the_handshake_era(old: Agent) -> None:
    result = (await old.post(old.request("tools/list"), plain(old))).json()["result"]

    assert set(result) == {"tools"}


async def test_a_version_that_never_was_is_refused(old: Agent) -> None:
    for version in (b"2025-01-01", b"2099-01-01", b"", b"newest", b"\xff"):
        response = await old.post(old.request("tools/list"), plain(old, (b"mcp-protocol-version", version)))

        fault = error_of(response, 400)
        assert fault["code"] == (-32022 if version != b"\xff" else -32020)
        if version == b"newest":
            assert fault["message"] == (
                f'Protocol version "{version.decode()}" is not supported. Send one of '
                f"{', '.join([STATELESS, *reversed(HANDSHAKES)])}."
            )


# 2026-07-28


async def test_server_discover_describes_the_service(new_agent: Agent) -> None:
    assert await new_agent.result("server/discover") == {
        "resultType": "complete",
        "_meta": {
            "io.modelcontextprotocol/serverInfo": {"name": "pantry", "title": "Pantry", "version": "1.0.0"},
        },
        "supportedVersions": [STATELESS, *reversed(HANDSHAKES)],
        "capabilities": {"tools": {}, "resources": {"subscribe": True, "listChanged": True}},
        "instructions": "List the jars before you fill one.",
        "ttlMs": 300_000,
        "cacheScope": "private",
    }


async def test_a_stateless_request_without_its_headers_is_refused(new_agent: Agent) -> None:
    response = await new_agent.post(new_agent.request("tools/list"), plain(new_agent))

    fault = error_of(response, 400)
    assert fault["code"] == -32020
    assert "MCP-Protocol-Version" in fault["message"]


async def test_a_stateless_request_with_a_version_of_the_handshake_era_is_refused(new_agent: Agent) -> None:
    response = await new_agent.post(
        new_agent.request("tools/list"), stateless(new_agent, mcp_protocol_version="2025-11-25")
    )

    assert error_of(response, 400)["code"] == -32020


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        (None, -32602),
        ({}, -32602),
        ({PROTOCOL: STATELESS}, -32602),
        ({CAPABILITIES: {}}, -32602),
        ({PROTOCOL: 5, CAPABILITIES: {}}, -32602),
        ({PROTOCOL: STATELESS, CAPABILITIES: 5}, -32602),
        ({PROTOCOL: "2025-11-25", CAPABILITIES: {}}, -32020),
    ],
)
async def test_a_stateless_request_with_incomplete_metadata_is_refused(
    new_agent: Agent, meta: dict[str, Any] | None, code: int
) -> None:
    params = {} if meta is None else {"_meta": meta}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params}

    response = await new_agent.post(message, stateless(new_agent))

    assert error_of(response, 400)["code"] == code
    assert response.json()["id"] == 7


async def test_the_name_of_the_client_is_optional(new_agent: Agent) -> None:
    meta: dict[str, Any] = {PROTOCOL: STATELESS, CAPABILITIES: {}}

    assert (await new_agent.post(new_agent.request("tools/list", {"_meta": meta}))).status_code == 200


@pytest.mark.parametrize("version", ["2025-11-25", "2027-01-01", "DRAFT"])
async def test_an_unsupported_version_is_refused_with_the_supported_ones(new_agent: Agent, version: str) -> None:
    meta = {**META, PROTOCOL: version}

    response = await new_agent.post(
        new_agent.request("tools/list", {"_meta": meta}), stateless(new_agent, mcp_protocol_version=version)
    )

    fault = error_of(response, 400)
    assert fault["code"] == -32022
    assert fault["data"] == {"supported": [STATELESS, *reversed(HANDSHAKES)], "requested": version}


# Headers say what the body says


@pytest.mark.parametrize(
    "others",
    [
        {"mcp_method": "tools/call"},
        {"mcp_method": "TOOLS/LIST"},
        {"mcp_method": ""},
        {"mcp_method": "tools/list\xff"},
        {"mcp_protocol_version": "2026-07-2"},
        {"mcp_protocol_version": "2026-07-28\xff"},
    ],
)
async def test_headers_that_differ_from_the_body_are_refused(new_agent: Agent, others: dict[str, str]) -> None:
    response = await new_agent.post(new_agent.request("tools/list"), stateless(new_agent, **others))

    assert error_of(response, 400)["code"] == -32020


@pytest.mark.parametrize("missing", [b"mcp-method", b"mcp-name"])
async def test_a_request_without_one_of_the_headers_of_the_protocol_is_refused(
    new_agent: Agent, missing: bytes
) -> None:
    message = new_agent.request("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 2}})
    headers = [header for header in new_agent.headers(message) if header[0] != missing]

    assert error_of(await new_agent.post(message, headers), 400)["code"] == -32020


@pytest.mark.parametrize("twice", [b"mcp-protocol-version", b"mcp-method", b"mcp-name"])
async def test_no_header_may_be_sent_twice(new_agent: Agent, twice: bytes) -> None:
    message = new_agent.request("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 2}})
    headers = new_agent.headers(message)
    again = [header for header in headers if header[0] == twice]

    assert error_of(await new_agent.post(message, [*headers, *again]), 400)["code"] == -32020
    first = [(twice, b"2025-11-25" if twice == b"mcp-protocol-version" else b"other")]
    assert error_of(await new_agent.post(message, [*first, *headers]), 400)["code"] == -32020
    assert error_of(await new_agent.post(message, [*headers, *first]), 400)["code"] == -32020


async def test_spaces_around_a_header_are_ignored(new_agent: Agent) -> None:
    message = new_agent.request("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 2}})
    headers = [(name, b" \t" + value + b"\t ") if name.startswith(b"mcp-") else (name, value)
               for name, value in new_agent.headers(message)]  # fmt: skip

    assert (await new_agent.post(message, headers)).status_code == 200


def encoded_header(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


async def test_a_name_in_a_header_may_be_base64(new_agent: Agent) -> None:
    for subject in ("add_numbers", encoded_header("add_numbers")):
        message = new_agent.request("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 2}})
        assert (await new_agent.post(message, stateless(new_agent, "tools/call", subject))).status_code == 200
    uri = "jar://☃"
    response = await new_agent.post(
        new_agent.request("resources/read", {"uri": uri}), stateless(new_agent, "resources/read", encoded_header(uri))
    )
    assert error_of(response, 400)["code"] == -32602


@pytest.mark.parametrize(
    "subject",
    [
        "other",
        "ADD_NUMBERS",
        encoded_header("other"),
        "=?base64?!!!?=",
        "=?base64?/w==?=",
        "=?base64?YWRk",
        "=?BASE64?YWRkX251bWJlcnM=?=",
        "=?base64?YWRkX251bWJlcnM?=",
        "",
        "add_numbers\xff",
    ],
)
async def test_a_name_that_differs_from_the_body_is_refused(new_agent: Agent, subject: str) -> None:
    message = new_agent.request("tools/call", {"name": "add_numbers", "arguments": {"a": 1, "b": 2}})

    assert error_of(await new_agent.post(message, stateless(new_agent, "tools/call", subject)), 400)["code"] == -32020


async def test_a_missing_name_in_the_body_is_refused_before_the_header_is_compared(new_agent: Agent) -> None:
    response = await new_agent.post(new_agent.request("tools/call"), stateless(new_agent, "tools/call", "add_numbers"))

    assert error_of(response, 400)["code"] == -32602


async def test_a_call_whose_headers_and_body_differ_is_not_run(kitchen: Kitchen, new_agent: Agent) -> None:
    message = new_agent.request("tools/call", {"name": "fill_jar", "arguments": {"jar_id": 1, "grams": 10}})

    error_of(await new_agent.post(message, stateless(new_agent, "tools/call", "get_jar")), 400)

    assert (await new_agent.call("get_jar", jar_id=1))["structuredContent"]["content"] == 0
