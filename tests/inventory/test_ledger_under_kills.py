"""Stock is changed at random from many connections, through two processes that are killed again and again.

`HOLDFAST_SOAK=1` (make soak) makes 100,000 changes; otherwise there are fewer.
"""

import asyncio
import os
from pathlib import Path

from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.stock.ledger_audit import audit
from holdfast.kit.security.http_client import HttpClient
from tests.helpers.processes import kill_in_turn, running_processes
from tests.helpers.serving import PLAIN
from tests.inventory.ledger_agent import POOL_COUNT, LedgerAgent

SOAK = "HOLDFAST_SOAK" in os.environ
CHANGES = 100_000 if SOAK else 3_000
CLIENTS = 64


async def test_every_acknowledged_change_is_in_the_ledger_once_and_every_balance_is_its_sum(
    inventory_url: str, settings: Settings, tmp_path: Path
) -> None:
    database = INVENTORY.database(settings)
    await database.open()
    shop, key = await database.transact(lambda tx: shops.add(tx, "busy.myshopify.com"))
    turns = iter(range(CHANGES))
    with running_processes(inventory_url, tmp_path, 2, service="inventory") as processes:
        agents = [LedgerAgent(processes, key, number) for number in range(CLIENTS)]
        async with HttpClient(verify=PLAIN, timeout=30, headers={"authorization": f"Bearer {key}"}) as http:
            for number in range(POOL_COUNT):
                fields = {"name": f"Pool {number}", "quantity": 100, "allow_negative": number % 4 == 0}
                await agents[0].insist(http, "create_pool", fields)
        async with kill_in_turn(processes, 1.5) as kills:
            await asyncio.gather(*(agent.work(turns) for agent in agents))

    differences = await database.read(lambda tx: audit(tx, shop.id))
    below_zero = await database.read(
        lambda tx: tx.tuples("select id from pools where on_hand < held and not allow_negative")
    )
    stored: dict[str, list[int]] = {}
    for idempotency_key, id in await database.read(
        lambda tx: tx.tuples("select idempotency_key, id from ledger where idempotency_key is not null order by id")
    ):
        stored.setdefault(idempotency_key, []).append(id)
    versions = await database.read(lambda tx: tx.tuples("select count(*), max(id) from ledger"))
    await database.close()

    acknowledged = {key: ids for agent in agents for key, ids in agent.acknowledged.items()}
    assert differences == []
    assert below_zero == []
    # Every acknowledged change is there once; nothing is there that nobody asked for, and nothing was refused twice.
    assert stored == acknowledged
    assert versions[0][0] == versions[0][1]
    assert kills
    assert len(acknowledged) > CHANGES / 2
    assert {code for agent in agents for code in agent.refusal_counts} <= {"not_enough_stock", "hold_ended"}
