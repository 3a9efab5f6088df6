"""What people come for is done on a real `holdfast up`, without a detour. `make tasks` prints what each task takes."""

from pathlib import Path

from tests.browser.tasks import MAX_CLICKS, do_tasks
from tests.command_line import run_up
from tests.helpers.data_directories import scratch_directory


async def test_tasks_are_done_in_few_clicks(tmp_path: Path) -> None:
    data_dir = scratch_directory()
    with run_up(data_dir, "--inventory-port=0", "--events-port=0") as output:
        outcomes = await do_tasks(output, data_dir / "mail", tmp_path)

    assert [(outcome.task.__name__, outcome.fault) for outcome in outcomes if outcome.fault] == []
    assert [
        (outcome.task.__name__, outcome.person.clicks)
        for outcome in outcomes
        if outcome.person.clicks > MAX_CLICKS[outcome.task]
    ] == []
    assert len(outcomes) == len(MAX_CLICKS)
