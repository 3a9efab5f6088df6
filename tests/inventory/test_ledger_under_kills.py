"""Stock is changed at random from many connections, through two processes that are killed again and again.

`HOLDFAST_SOAK=1` (make soak) makes 100,000 changes; otherwise there are fewer.
"""

import asyncio
import contextlib
import itertools
import os
import random
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx2

from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.stock.operations import audit
from holdfast.kit.security.http_client import HttpClient
from tests.faults.processes import Process, serving
from tests.kit.background_loops import at_work
from tests.serving import PLAIN

SOAK = "HOLDFAST_SOAK" in os.environ
CHANGES = 100_000 if SOAK else 3_000
CLIENTS = 64
POOLS = 12


class Agent:
    """One of many who change the same pools. Each call has an idempotency key, and is repeated until it is answered."""

    def __init__(self, processes: list[Process], key: str, number: int) -> None:
        self.processes = processes
        self.key = key
        self.random = random.Random(number)
        self.number = number
        self.holds: list[int] = []
        self.acknowledged: dict[str, list[int]] = {}
        self.refused: Counter[str] = Counter()

    async def work(self, turns: Iterator[int]) -> None:
        async with HttpClient(verify=PLAIN, timeout=30, headers={"authorization": f"Bearer {self.key}"}) as http:
            for turn in turns:
                tool, arguments = self.choose()
                key = f"{self.number}-{turn}"
                answer = await self.insist(http, tool, {**arguments, "idempotency_key": key})
                if answer.get("isError"):
                    self.refused[answer["content"][0]["text"].split('"')[3]] += 1
                    continue
                change = answer["structuredContent"]
                self.acknowledged[key] = [entry["id"] for entry in change["entries"]]
                if change["hold"]:
                    self.holds.append(change["hold"]["id"])

    def choose(self) -> tuple[str, dict[str, Any]]:
        pool, other = self.random.sample(range(1, POOLS + 1), 2)
        amount = self.random.randint(1, 40)
        match self.random.randrange(8):
            case 0:
                return "set_pool_quantity", {"pool_id": pool, "quantity": amount * 5}
            case 1:
                return "transfer_quantity", {"from_pool_id": pool, "to_pool_id": other, "quantity": amount}
            case 2:
                return "hold_quantity", {"pool_id": pool, "quantity": amount, "ttl_s": self.random.choice([1, 600])}
            case 3 if self.holds:
                return "release_hold", {"hold_id": self.holds.pop()}
            case 4:
                items = [{"pool_id": id, "delta": self.random.choice([-1, 1]) * amount} for id in (pool, other, pool)]
                return "bulk_adjust", {"items": items}
            case _:
                return "adjust_pool_quantity", {"pool_id": pool, "delta": self.random.choice([-1, 1]) * amount}

    async def insist(self, http: httpx2.AsyncClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer to a call. When a connection breaks, the same call goes to another process."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        for number in itertools.count(self.number):
            with contextlib.suppress(httpx2.TransportError):
                process = self.processes[number % len(self.processes)]
                response = await http.post(f"{process.url}/mcp", json=message)
                if response.status_code != 503:
                    assert response.status_code == 200, response.text
                    return response.json()["result"]
        raise AssertionError("it never ends")


@contextlib.asynccontextmanager
async def killing(processes: list[Process]) -> AsyncGenerator[Counter[str]]:
    """While the block lasts, one process after the other is killed at a random moment and started again."""
    kills: Counter[str] = Counter()
    chance = random.Random(7)

    async def kill() -> None:
        while True:
            await asyncio.sleep(chance.uniform(0.2, 1.5))
            process = chance.choice(processes)
            process.kill()
            kills["killed"] += 1
            await asyncio.to_thread(process.start)

    async with at_work(kill()):
        yield kills


async def test_every_acknowledged_change_is_in_the_ledger_once_and_every_balance_is_its_sum(
    inventory_url: str, settings: Settings, tmp_path: Path
) -> None:
    database = INVENTORY.database(settings)
    await database.open()
    shop, key = await database.transact(lambda tx: shops.add(tx, "busy.myshopify.com"))
    turns = iter(range(CHANGES))
    with serving(inventory_url, tmp_path, 2, service="inventory") as processes:
        agents = [Agent(processes, key, number) for number in range(CLIENTS)]
        async with HttpClient(verify=PLAIN, timeout=30, headers={"authorization": f"Bearer {key}"}) as http:
            for number in range(POOLS):
                fields = {"name": f"Pool {number}", "quantity": 100, "allow_negative": number % 4 == 0}
                await agents[0].insist(http, "create_pool", fields)
        async with killing(processes) as kills:
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
    assert kills["killed"] > 0
    assert len(acknowledged) > CHANGES / 2
    assert {code for agent in agents for code in agent.refused} <= {"not_enough_stock", "hold_ended"}
