"""agents.md: its lines work as printed, and its limits and tables are those of the service."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.events.settings import Settings
from holdfast.kit.mcp.endpoint import VERSIONS
from holdfast.kit.mcp.tools import definition
from holdfast.kit.postgres.pagination import OffsetPage
from tests.events.agents.documents import BASE_URL, document
from tests.events.agents.handbook import Handbook
from tests.events.agents.samples import TOOLS, agent
from tests.events.refusal_scene import KINDS
from tests.helpers.events_service import Client, Service, running_events
from tests.helpers.processes import Process, running_processes

NEXT = "=== the next block ===\n"


@pytest.fixture
async def handbook(http: httpx2.AsyncClient) -> Handbook:
    return Handbook(await document(http, "/agents.md"))


# Its lines


@pytest.fixture
def process(database_url: str, tmp_path: Path) -> Iterator[Process]:
    """The service in a process of its own, with background work."""
    with running_processes(database_url, tmp_path, 1) as (process,):
        yield process


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
async def test_an_agent_gets_from_nothing_to_an_event_with_people_by_its_lines(
    process: Process, tmp_path: Path
) -> None:
    home = tmp_path / "agent"
    home.mkdir()

    printed = await run(await blocks(process.url), home)

    first, second, third, (registration, registrations), (called,) = printed
    assert first == second == third == []
    organizer, event, accepted = (
        json.loads((home / f"{name}.json").read_text()) for name in ("organizer", "event", "accepted")
    )
    assert organizer["data"]["organizer"]["slug"].startswith("riverside-")
    assert event["data"]["public_url"].startswith(organizer["data"]["organizer"]["public_url"])
    assert event["data"]["embed_code"].startswith("<iframe ")
    assert (event["data"]["status"], event["data"]["payment"]["status"]) == ("active", "not_required")
    assert accepted["next"]["url"] == f"/api/registrations/{event['data']['id']}/{registration['data']['user_id']}"
    assert registration["data"]["status"] == "registered"
    assert [registration["status"] for registration in registrations["data"]] == ["registered"] * 3
    assert registrations["data"][-1] == registration["data"]
    assert called["result"]["structuredContent"] == {**event["data"], "registration_count": 3}
    assert called["result"]["isError"] is False


async def blocks(base_url: str) -> list[str]:
    async with httpx2.AsyncClient(base_url=base_url) as http:
        return Handbook(await document(http, "/agents.md")).code("sh")


async def run(blocks: list[str], home: Path) -> list[list[Any]]:
    """The JSON values that each block prints, all of them run in one shell that bears no mistake."""
    lines = f"echo '{NEXT.strip()}'\n".join(blocks)
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", lines),
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(shell.communicate(), 60)
    assert (err, shell.returncode) == (b"", 0)
    return [values(part) for part in out.decode().split(NEXT)]


def values(text: str) -> list[Any]:
    """JSON values that follow one another."""
    decoded: list[Any] = []
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        decoded.append(value)
        text = text[end:]
    return decoded


# What it says


async def test_the_handbook_of_agents_has_every_tool_with_its_summary(handbook: Handbook) -> None:
    assert handbook.table("tool", "what it does") == [[tool.name, tool.summary] for tool in TOOLS.values()]


async def test_the_handbook_of_agents_has_the_configuration_to_connect(handbook: Handbook) -> None:
    (configuration,) = handbook.code("json")

    assert json.loads(configuration) == {
        "mcpServers": {
            "events": {"type": "http", "url": f"{BASE_URL}/mcp", "headers": {"Authorization": "Bearer <API_KEY>"}}
        }
    }
    assert ", ".join(VERSIONS) in handbook.text


async def test_the_errors_that_agents_md_lists_are_those_that_are_answered(handbook: Handbook) -> None:
    rows = handbook.table("status", "code", "what to do")

    assert len(rows) > 5
    for status, codes, _ in rows:
        for code in re.findall(r"\w+", codes):
            assert KINDS[code].status == int(status), code
    assert set(re.findall(r"`(\w+_\w+)`", handbook.text)) & KINDS.keys() >= {"registration_rejected", "event_full"}


async def test_the_handbook_of_agents_has_the_limits_of_the_settings(settings: Settings) -> None:
    limits = {"registrations_per_minute": 77, "organizers_per_hour": 7}
    async with running_events(settings.model_copy(update=limits)) as service:
        text = " ".join((await document(service.http, "/agents.md")).split())

    assert "77 registrations a minute with one key, 7 new organizers an hour from one address" in text


async def test_the_handbook_of_agents_has_the_page_sizes_of_the_tools(handbook: Handbook) -> None:
    limit = definition(TOOLS["list_events"])["inputSchema"]["properties"]["limit"]

    most, tools, lists = limit["maximum"], limit["default"], msgspec.structs.fields(OffsetPage)[1].default
    assert f"`limit` (at most {most}; without it a tool returns {tools} items, and a `GET` {lists})" in handbook.text


async def test_an_event_is_about_as_long_as_it_says(service: Service, ada: Client, handbook: Handbook) -> None:
    (kilobytes,) = re.findall(r"An event is about\s+(\d) kB", handbook.text)

    result = await agent(service, ada).call("get_event", event_id=1)

    assert 0.5 <= len(result["content"][0]["text"]) / (1000 * int(kilobytes)) <= 1.5
