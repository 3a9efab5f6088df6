"""People register through two processes while everything fails: the order of arrival explains every answer."""

from pathlib import Path

from holdfast.events.service import EVENTS
from tests.helpers.data_directories import migrated_database
from tests.helpers.processes import organizer_at, running_processes
from tests.models.history import History
from tests.models.registration_history import (
    People,
    create_events,
    explain_answers,
    list_registrations,
    wait_until_settled,
)


async def test_the_order_of_arrival_explains_every_answer_to_registrations(tmp_path: Path) -> None:
    database_url = migrated_database(EVENTS)  # on a server of its own, which crashes
    with running_processes(database_url, tmp_path, 2) as processes:
        async with organizer_at(processes[0].url) as ada:
            events = await create_events(ada)
        history = History(processes, database_url, ada.headers)
        await history.run(People(history, events).come)
        await wait_until_settled(database_url)
    explain_answers(history.exchanges, list_registrations(database_url))
