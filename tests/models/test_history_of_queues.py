"""Visitors wait through two processes while everything fails: the tickets explain every answer."""

from pathlib import Path

import pytest

from holdfast.events.service import EVENTS
from tests.faults.stored_order import stored_tickets
from tests.helpers.data_directories import migrated_database
from tests.helpers.processes import organizer_at, running_processes
from tests.models.history import History
from tests.models.queue_history import Visitors, create_queue, explain_answers


async def test_the_tickets_explain_every_answer_of_a_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database_url = migrated_database(EVENTS)  # on a server of its own, which crashes
    monkeypatch.setenv("QUEUE_RELEASE_INTERVAL_SECONDS", "1")
    with running_processes(database_url, tmp_path, 2, base_url="http://events.example") as processes:
        async with organizer_at(processes[0].url) as ada:
            path = await create_queue(ada)
        history = History(processes, database_url, ada.headers)
        await history.run(Visitors(history, path).come)
    explain_answers(history.exchanges, *stored_tickets(database_url))
