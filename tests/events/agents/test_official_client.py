"""The official MCP client works with a running service of which it knows only the address, in both eras."""

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.client import ConnectMode
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from tests.events.agents.handbook import Handbook
from tests.helpers.events_service import eventually
from tests.helpers.processes import running_processes

ERAS: list[tuple[ConnectMode, str]] = [("auto", "2026-07-28"), ("legacy", "2025-11-25")]
eras = pytest.mark.parametrize(("mode", "version"), ERAS)

PEOPLE = ("ada", "ben", "cal", "dee", "eva", "fay", "gus", "hal", "ida", "jim")


@pytest.fixture
def base_url(database_url: str, tmp_path: Path) -> Iterator[str]:
    """The address of the service, in a process of its own that settles registrations too."""
    with running_processes(database_url, tmp_path, 1) as (process,):
        yield process.url


class ReadingAgent:
    """An agent that has read the text, and follows it."""

    def __init__(self, client: Client, handbook: Handbook) -> None:
        self.client = client
        self.handbook = handbook

    async def ask(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool that the text has a line for."""
        assert tool in self.handbook.tools
        return await self.client.call_tool(tool, arguments)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers that does its work."""
        result = await self.ask(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def publish(self, **changes: Any) -> int:
        """Create the event of the example, changed; its id."""
        example = json.loads(self.handbook.request("### 2. Publish an event").body)["event"]
        return (await self.call("create_event", **example | changes))["id"]

    async def register(self, event_id: int, person: str) -> dict[str, Any] | None:
        """Register a person as the example does; what asks for the outcome, or None when there is no place any more."""
        example = re.search(r"`create_registration` takes `({.+?})`", self.handbook.text.replace("\n", " "))
        assert example
        arguments = {**json.loads(example[1]), "event_id": event_id, "email": f"{person}@example.com"}
        result = await self.ask("create_registration", arguments)
        if result.is_error:
            assert refusal(result)["code"] == "event_full"
            return None
        assert result.structured_content
        assert result.structured_content["status"] == "accepted"
        return {"event_id": event_id, "user_id": result.structured_content["next"]["url"].rpartition("/")[2]}

    async def outcome(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The registration, or why there is none, as soon as it is settled."""
        content: dict[str, Any] = {}

        async def is_settled() -> bool:
            result = await self.ask("get_registration", arguments)
            content.clear()
            content.update(refusal(result) if result.is_error else result.structured_content or {})
            assert content.get("code") != "registration_pending" or content["retryable"] is True
            return content.get("code") != "registration_pending"

        await eventually(is_settled)
        return content


def refusal(result: CallToolResult) -> dict[str, Any]:
    """What a refused agent reads."""
    (content,) = result.content
    return json.loads(getattr(content, "text", ""))


@contextlib.asynccontextmanager
async def connect_by_discovery(base_url: str, mode: ConnectMode, version: str) -> AsyncGenerator[ReadingAgent]:
    """An agent who knew an address, and has got itself a key and a connection from what is written there."""
    async with httpx2.AsyncClient() as http:
        handbook = Handbook((await http.get(f"{base_url}/agents.md")).text)
        first = handbook.request("### 1. Register an organizer, and get a key")
        body = first.body.replace("$SLUG", "riverside-walk")
        registered = await http.post(first.url, content=body, headers=first.headers)
        assert registered.status_code == 201, registered.text
        key = registered.json()["data"]["api_key"]["key"]
    (configuration,) = handbook.code("json")
    (server,) = json.loads(configuration)["mcpServers"].values()
    headers = {name: value.replace("<API_KEY>", key) for name, value in server["headers"].items()}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(server["url"], http_client=http), mode=mode) as client,
    ):
        assert client.protocol_version == version
        yield ReadingAgent(client, handbook)


@eras
async def test_the_official_client_gets_from_the_address_to_an_event_with_ten_people(
    base_url: str, mode: ConnectMode, version: str
) -> None:
    async with connect_by_discovery(base_url, mode, version) as agent:
        event_id = await agent.publish()
        requests = [await agent.register(event_id, person) for person in PEOPLE]
        outcomes = [await agent.outcome(arguments) for arguments in requests if arguments]
        event = await agent.call("get_event", event_id=event_id)
        listed = await agent.call("list_registrations", limit=50)

    assert [outcome["status"] for outcome in outcomes] == ["registered"] * 10
    assert listed["data"] == outcomes
    assert listed["pagination"]["has_more"] is False
    assert (event["registration_count"], event["status"]) == (10, "active")
    assert event["public_url"] == f"{base_url}/organizers/riverside-walk/events/{event_id}"


@eras
async def test_the_official_client_fills_seven_seats_and_a_waiting_list_in_order_of_arrival(
    base_url: str, mode: ConnectMode, version: str
) -> None:
    async with connect_by_discovery(base_url, mode, version) as agent:
        event_id = await agent.publish(capacity=7, waitinglist_capacity=2)
        *requests, last = [await agent.register(event_id, person) for person in PEOPLE]
        outcomes = [await agent.outcome(arguments) for arguments in requests if arguments]
        # A person who comes when the event is known to be full is refused at once, else when it is settled.
        rejected = await agent.outcome(last) if last else None
        event = await agent.call("get_event", event_id=event_id)
        listed = await agent.call("list_registrations")

    assert [outcome["status"] for outcome in outcomes] == ["registered"] * 7 + ["waitlisted"] * 2
    assert rejected is None or rejected["code"] == "registration_rejected"
    assert listed["data"] == outcomes
    assert [outcome["received_at"] for outcome in outcomes] == sorted(outcome["received_at"] for outcome in outcomes)
    assert (event["registration_count"], event["status"]) == (7, "full")


@eras
async def test_the_official_client_finds_the_tools_and_reads_the_documents(
    base_url: str, mode: ConnectMode, version: str
) -> None:
    published = {"agents": "/agents.md", "docs": "/docs.md", "catalog": "/api", "openapi": "/openapi.json"}
    async with connect_by_discovery(base_url, mode, version) as agent, httpx2.AsyncClient(base_url=base_url) as http:
        tools = (await agent.client.list_tools()).tools
        resources = (await agent.client.list_resources()).resources
        templates = (await agent.client.list_resource_templates()).resource_templates
        read = {resource.uri: (await agent.client.read_resource(resource.uri)).contents for resource in resources}
        pages = {f"holdfast://{name}": await http.get(path) for name, path in published.items()}

    assert [tool.name for tool in tools] == agent.handbook.tools
    assert templates == []
    assert read.keys() == pages.keys() == set(re.findall(r"holdfast://\w+", agent.handbook.text))
    for uri, (content,) in read.items():
        text, page = getattr(content, "text", ""), pages[uri]
        assert page.headers["content-type"].partition(";")[0] == content.mime_type
        same = json.loads(text) == page.json() if content.mime_type == "application/json" else text == page.text
        assert same, uri
