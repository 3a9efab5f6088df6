"""Frauds of a draw, planted in the sealed log of a running service, which signs it again; people find them over HTTP.

The sentences are those of `fraud_table.py`, which also makes the table in docs/events/frauds.md.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.events.settings import Settings
from holdfast_verify.check import catching_up
from holdfast_verify.formats.drawn_order import draw_order, hash_of_order
from tests.events.draws.draw_steps import PEOPLE
from tests.events.draws.event_scene import EventDraw, confirm_entries, opening_event
from tests.events.log.forger import Forger
from tests.events.log.fraud_table import FRAUDS
from tests.events.log.log_scene import seal_logs
from tests.helpers.serving import serve_events
from tests.verify.audit.honest_event import Entry


@pytest.fixture
async def draw(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventDraw]:
    """An event with five entries, of which three are confirmed."""
    monkeypatch.setattr(catching_up, "TIMEOUT_SECONDS", 0)
    async with (
        serve_events(settings) as service,
        opening_event(service, monkeypatch, capacity=3) as draw,
    ):
        await draw.enter(*PEOPLE)
        await confirm_entries(draw, "bob", "dan", "gus")
        yield draw


async def finish(draw: EventDraw, directory: Path) -> Forger:
    """Freeze, draw and give the places as the service does."""
    await draw.freeze_in_log()
    await draw.draw()
    await draw.give_places()
    await seal_logs(draw.service)
    url = draw.service.database.resources.settings.base_url
    return Forger(draw.service, draw.ada, draw.event, url, directory)


async def findings(forger: Forger) -> list[str]:
    """What a check finds, except late arrivals: the times of a scene are not real."""
    return [finding for finding in (await forger.verify())[1] if not finding.startswith("late: ")]


def of_kind(entries: list[Entry], kind: str) -> list[Entry]:
    return [entry for entry in entries if entry["kind"] == kind]


def swap_in_list(entries: list[Entry]) -> None:
    of_kind(entries, "arrival")[1]["person"] = "x" * 43


def remove_entry(entries: list[Entry]) -> None:
    entries.remove(of_kind(entries, "arrival")[1])


def put_late_one_into_list(entries: list[Entry]) -> None:
    of_kind(entries, "arrival")[-1]["at"] = of_kind(entries, "freeze")[0]["at"]


def leave_early_one_out(entries: list[Entry]) -> None:
    of_kind(entries, "freeze")[0]["entries"] -= 1


def draw_another_round(entries: list[Entry]) -> None:
    of_kind(entries, "draw")[0]["round"] -= 1


def alter_order(entries: list[Entry]) -> None:
    [drawn] = of_kind(entries, "draw")
    order = draw_order(bytes.fromhex(drawn["seed"]), len(PEOPLE))
    drawn["order"] = hash_of_order([order[1], order[0], *order[2:]]).hex()


def place_out_of_turn(entries: list[Entry]) -> None:
    first, second, *_ = of_kind(entries, "place")
    first["number"], second["number"] = second["number"], first["number"]


def draw_twice(entries: list[Entry]) -> None:
    [drawn] = of_kind(entries, "draw")
    entries.insert(entries.index(drawn) + 1, {**drawn})


def freeze_late(entries: list[Entry]) -> None:
    of_kind(entries, "freeze")[0]["at"] = of_kind(entries, "draw")[0]["at"]


def confirm_late(entries: list[Entry]) -> None:
    [confirmed] = of_kind(entries, "confirmations")
    numbers = {entry["number"] for entry in of_kind(entries, "arrival")}
    [other, *_] = sorted(numbers - {*confirmed["numbers"]})
    place = entries.index(of_kind(entries, "freeze")[0])
    entries.insert(place + 1, {**confirmed, "numbers": [other]})


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("list swapped", swap_in_list),
        ("entry removed", remove_entry),
        ("late entry", put_late_one_into_list),
        ("early entry left out", leave_early_one_out),
        ("another round", draw_another_round),
        ("order altered", alter_order),
        ("out of turn", place_out_of_turn),
        ("drawn twice", draw_twice),
        ("frozen late", freeze_late),
        ("confirmed late", confirm_late),
    ],
)
async def test_a_fraud_of_a_draw_is_found(
    draw: EventDraw, tmp_path: Path, name: str, plant: Callable[[list[dict[str, Any]]], None]
) -> None:
    forger = await finish(draw, tmp_path)
    assert await findings(forger) == []

    await forger.rewrite(plant)

    messages = await findings(forger)
    assert FRAUDS[name].is_in(messages), messages


async def test_an_invented_entry_that_is_confirmed_before_the_freeze_is_not_found(
    draw: EventDraw, tmp_path: Path
) -> None:
    await draw.enter("nobody")
    await draw.service.run_sql("update users set proved_at = now() where email = 'nobody@example.com'")

    assert await findings(await finish(draw, tmp_path)) == []
    assert FRAUDS["confirmed invention"].message == "passes"
