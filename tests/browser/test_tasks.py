"""What people come for is done on a real `holdfast up`, without a detour. `make tasks` prints what each task takes."""

from pathlib import Path

from tests.browser.demonstration import run_demonstration
from tests.browser.tasks import MAX_CLICKS, do_tasks


async def test_tasks_are_done_in_few_clicks(tmp_path: Path) -> None:
    with run_demonstration() as demonstration:
        outcomes = await do_tasks(demonstration, tmp_path)

    assert [(outcome.task.__name__, outcome.fault) for outcome in outcomes if outcome.fault] == []
    assert [
        (outcome.task.__name__, outcome.person.clicks)
        for outcome in outcomes
        if outcome.person.clicks > MAX_CLICKS[outcome.task]
    ] == []
    assert len(outcomes) == len(MAX_CLICKS)
