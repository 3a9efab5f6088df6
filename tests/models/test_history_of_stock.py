"""Stock is changed through two processes while everything fails: the ledger explains every answer."""

from pathlib import Path

from holdfast.inventory.service import INVENTORY
from tests.helpers.data_directories import migrated_database
from tests.helpers.inventory_service import unlimited
from tests.helpers.processes import running_processes
from tests.models.history import History
from tests.models.stock_history import Agents, create_shop, explain_answers, read_versions


async def test_the_ledger_explains_every_answer_to_changes_of_stock(tmp_path: Path) -> None:
    database_url = migrated_database(INVENTORY)  # on a server of its own, which crashes
    key = await create_shop(unlimited(database_url, tmp_path))
    with running_processes(database_url, tmp_path, 2, service="inventory") as processes:
        agents = Agents(History(processes, database_url, {"authorization": f"Bearer {key}"}))
        model = await agents.begin()
        await agents.history.run(agents.work)
    explain_answers(agents.history.exchanges, model, read_versions(database_url))
