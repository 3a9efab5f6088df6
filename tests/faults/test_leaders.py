"""When the process that settles is killed, or stops without a word, another one settles within seconds."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.kit.background.leaders import MAX_TAKEOVER_SECONDS
from holdfast.kit.security.http_client import HttpClient
from tests.faults.processes import Process, outcomes, serving
from tests.faults.test_selling_out import organizer_with_event


@pytest.mark.parametrize(
    ("leave", "seconds"),
    [(Process.stop, 2.0), (Process.kill, MAX_TAKEOVER_SECONDS), (Process.halt, MAX_TAKEOVER_SECONDS)],
    ids=["stopped in order", "killed", "stalled"],
)
async def test_a_registration_has_its_outcome_soon_after_the_process_that_settles_is_gone(
    database_url: str, tmp_path: Path, leave: Callable[[Process], object], seconds: float
) -> None:
    with serving(database_url, tmp_path, 3) as processes:
        key, event_id = await organizer_with_event(processes[1])
        before = await register(processes[1], key, event_id, "ann@example.com")
        await outcomes(processes[1], key, [before])

        await asyncio.to_thread(leave, processes[0])
        began = asyncio.get_running_loop().time()
        poll = await register(processes[1], key, event_id, "ben@example.com")
        [answer] = (await outcomes(processes[1], key, [poll])).values()
        took = asyncio.get_running_loop().time() - began

    assert answer["data"]["status"] == "registered"
    assert took < seconds
    print(f"settled again after {took:.1f} s")


async def register(process: Process, key: str, event_id: int, email: str) -> str:
    """Register somebody; where to poll."""
    async with HttpClient(base_url=process.url, headers={"X-API-Key": key}) as http:
        answer = await http.post("/api/registrations", json={"registration": {"event_id": event_id, "email": email}})
    assert answer.status_code == 202, answer.text
    return answer.json()["next"]["url"]
