"""`holdfast verify` compares a draw repeated in the log of a restored backup with the log before it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from holdfast.events.settings import Settings
from holdfast_verify.check import catching_up
from tests.events.draws.draw_steps import PEOPLE
from tests.events.draws.event_scene import EventDraw, confirm_entries, opening_event
from tests.events.log.log_scene import seal_logs
from tests.events.log.verification import verify
from tests.helpers.serving import serve_events


@pytest.fixture
async def restored_draw(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventDraw]:
    """An event whose list was frozen, in a database that was restored then. Nothing of its new log is sealed."""
    monkeypatch.setattr(catching_up, "TIMEOUT_SECONDS", 0)
    async with (
        serve_events(settings) as service,
        opening_event(service, monkeypatch, capacity=3) as draw,
    ):
        await draw.enter(*PEOPLE)
        await confirm_entries(draw, "bob", "dan", "gus")
        await draw.freeze_in_log()
        await seal_logs(service)
        draw.restore()
        yield draw


async def faults(draw: EventDraw) -> list[str]:
    """Draw, give the places, and verify. What is wrong with the draw; the times of a scene are not real."""
    await draw.seal()
    await draw.draw()
    await draw.give_places()
    await seal_logs(draw.service)
    url = draw.service.database.resources.settings.base_url
    _, report = await asyncio.to_thread(verify, f"{url}/log/events/{draw.event['id']}")
    return [finding["message"] for finding in report["findings"] if finding["rule"] == "draw"]


async def test_a_draw_repeated_in_the_log_is_right_after_a_second_restore(restored_draw: EventDraw) -> None:
    await seal_logs(restored_draw.service)
    restored_draw.restore()
    assert await faults(restored_draw) == []
    assert (await restored_draw.log())[0]["origin"].endswith("/3")


@pytest.mark.parametrize(
    ("kind", "change", "fault"),
    [
        ("freeze", '{"entries": 6}', "The freeze that this log repeats is not the one that"),
        ("confirmations", '{"numbers": [1, 2, 4]}', "The confirmations that this log repeats are not those that"),
    ],
)
async def test_a_changed_draw_in_a_restored_log_is_a_fault(
    restored_draw: EventDraw, kind: str, change: str, fault: str
) -> None:
    await restored_draw.service.run_sql(
        "update log_pending set details = details || %(change)s::jsonb where kind = %(kind)s::log_entry_kind",
        change=change,
        kind=kind,
    )
    assert any(message.startswith(fault) for message in await faults(restored_draw))


async def test_a_confirmation_that_is_put_in_after_the_freeze_is_found(restored_draw: EventDraw) -> None:
    await restored_draw.seal()
    await restored_draw.service.run_sql(
        """
        insert into log_pending (log_id, kind, details)
        select id, 'confirmations', '{"numbers": [1]}' from logs where closed_at is null and event_id is not null
        """
    )
    assert [message for message in await faults(restored_draw) if "after the list was frozen" in message]
