"""People register through two processes while everything fails: the order of arrival explains every answer."""

from pathlib import Path

from tests.helpers.processes import serving
from tests.models.history import History
from tests.models.registration_history import (
    People,
    create_organizer,
    explain_answers,
    list_registrations,
    wait_until_settled,
)


async def test_the_order_of_arrival_explains_every_answer_to_registrations(crashing_url: str, tmp_path: Path) -> None:
    with serving(crashing_url, tmp_path, 2) as processes:
        headers, events = await create_organizer(processes[0].url)
        history = History(processes, crashing_url, headers)
        await history.run(People(history, events).come)
        await wait_until_settled(crashing_url)
    explain_answers(history.exchanges, list_registrations(crashing_url))
