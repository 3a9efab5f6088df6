"""Visitors wait through two processes while everything fails: the tickets explain every answer."""

from pathlib import Path

import pytest

from tests.faults.stored_order import stored_tickets
from tests.helpers.processes import organizer_at, serving
from tests.models.history import History
from tests.models.queue_history import Visitors, create_queue, explain_answers


async def test_the_tickets_explain_every_answer_of_a_queue(
    crashing_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_RELEASE_INTERVAL_SECONDS", "1")
    with serving(crashing_url, tmp_path, 2, base_url="http://events.example") as processes:
        async with organizer_at(processes[0].url) as ada:
            path = await create_queue(ada)
        history = History(processes, crashing_url, {"X-API-Key": ada.key or ""})
        await history.run(Visitors(history, path).come)
    explain_answers(history.exchanges, *stored_tickets(crashing_url))
