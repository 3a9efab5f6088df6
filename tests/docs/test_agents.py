"""The agents of the pages about tools work as printed, with the official client and a real server."""

import asyncio
import re
import runpy
import sys
from pathlib import Path

import pytest

from holdfast.events.seats import settlement
from holdfast.events.settings import Settings
from holdfast_demo.data import inventory as demo
from tests.helpers import inventory_service as inventory
from tests.helpers.background_loops import run_in_background
from tests.helpers.serving import bind_port, running_already, serve_app, serve_events

DOCS = Path(__file__).parents[2] / "docs"


class DocumentedAgent:
    """The program beside a page, and what the page says that it prints."""

    def __init__(self, page: str) -> None:
        section = (DOCS / page).read_text(encoding="utf-8").split("## An agent in Python\n")[1].split("\n## ")[0]
        [command] = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        [self.output] = re.findall(r"\n```\n(.*?)```", section.split(command)[1].removeprefix("```\n"), re.DOTALL)
        self.arguments = re.findall(r'"[^"]+"|\S+', command.partition("agent.py")[2])
        self._file = (DOCS / page).with_name("agent.py")

    async def run(self, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
        """Run it to its end, in a thread of this process."""
        monkeypatch.setattr(sys, "argv", ["agent.py", *(argument.strip('"') for argument in self.arguments)])
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        await asyncio.to_thread(runpy.run_path, str(self._file), run_name="__main__")


async def test_an_agent_sells_by_sku_and_says_what_is_left_once_for_an_order(
    inventory_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, port = DocumentedAgent("inventory/agents.md"), bind_port()
    url = port.url
    settings = inventory.unlimited(inventory_url, tmp_path).model_copy(update={"base_url": url})
    async with inventory.running_inventory(settings) as service, serve_app(running_already(service.app), port):
        key = await service.database.transact(demo.create_demo_shop)
        assert key
        await agent.run(monkeypatch, INVENTORY=url, SHOP_KEY=key)
        first = capsys.readouterr().out
        await agent.run(monkeypatch, INVENTORY=url, SHOP_KEY=key)
        second = capsys.readouterr().out

    assert first == agent.output
    assert second.splitlines() == ["6-pack can be sold: 7", "Honey jars left: 44"]


async def test_an_agent_registers_a_person_and_says_the_outcome(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = DocumentedAgent("events/agents.md")
    async with serve_events(settings) as service, run_in_background(settlement.LOOP.run(service.database)):
        ada = await service.organizer()
        assert ada.key
        await ada.create_event(title="Life drawing", capacity=1)
        await agent.run(monkeypatch, EVENTS=service.base_url, KEY=ada.key)
        first = capsys.readouterr().out
        agent.arguments[-1] = "ben@example.com"
        await agent.run(monkeypatch, EVENTS=service.base_url, KEY=ada.key)
        second = capsys.readouterr().out

    assert first == agent.output
    assert re.fullmatch(r"ben@example.com Every seat of event \d+ is taken and its waiting list has no room.\n", second)
