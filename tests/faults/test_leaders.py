"""When the process that settles is killed, or stops without a word, another one settles within seconds."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.kit.background.leaders import MAX_TAKEOVER_SECONDS
from tests.faults.stored_order import register_organizer_with_event
from tests.helpers.processes import Process, outcomes, register_person, running_processes


@pytest.mark.parametrize(
    ("leave", "seconds"),
    [(Process.stop, 2.0), (Process.kill, MAX_TAKEOVER_SECONDS), (Process.suspend, MAX_TAKEOVER_SECONDS)],
    ids=["stopped in order", "killed", "stalled"],
)
async def test_a_registration_has_its_outcome_soon_after_the_process_that_settles_is_gone(
    database_url: str, tmp_path: Path, leave: Callable[[Process], object], seconds: float
) -> None:
    with running_processes(database_url, tmp_path, 3) as processes:
        key, event_id = await register_organizer_with_event(processes[1])
        before = await register_person(processes[1], key, event_id, "ann@example.com")
        await outcomes(processes[1], key, [before])

        await asyncio.to_thread(leave, processes[0])
        began = asyncio.get_running_loop().time()
        poll = await register_person(processes[1], key, event_id, "ben@example.com")
        [answer] = (await outcomes(processes[1], key, [poll])).values()
        took = asyncio.get_running_loop().time() - began

    assert answer["data"]["status"] == "registered"
    assert took < seconds
    print(f"settled again after {took:.1f} s")
