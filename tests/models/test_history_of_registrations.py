"""People register through two processes while everything fails: the order of arrival explains every answer."""

from pathlib import Path

from tests.helpers.processes import organizer_at, serving
from tests.models.history import History
from tests.models.registration_history import (
    People,
    create_events,
    explain_answers,
    list_registrations,
    wait_until_settled,
)


async def test_the_order_of_arrival_explains_every_answer_to_registrations(crashing_url: str, tmp_path: Path) -> None:
    with serving(crashing_url, tmp_path, 2) as processes:
        async with organizer_at(processes[0].url) as ada:
            events = await create_events(ada)
        history = History(processes, crashing_url, {"X-API-Key": ada.key or ""})
        await history.run(People(history, events).come)
        await wait_until_settled(crashing_url)
    explain_answers(history.exchanges, list_registrations(crashing_url))
