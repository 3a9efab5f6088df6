"""Agents that change the same pools again and again, while processes are killed."""

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx2

from holdfast.kit.security.http_client import HttpClient
from tests.helpers.processes import Process
from tests.helpers.serving import PLAIN

POOL_COUNT = 12


class LedgerAgent:
    """One of many who change the same pools. Each call has an idempotency key, and is repeated until it is answered."""

    def __init__(self, processes: list[Process], key: str, number: int) -> None:
        self.processes = processes
        self.key = key
        self.random = random.Random(number)
        self.number = number
        self.holds: list[int] = []
        self.acknowledged: dict[str, list[int]] = {}
        self.refusal_counts: Counter[str] = Counter()

    async def work(self, turns: Iterator[int]) -> None:
        async with HttpClient(verify=PLAIN, timeout=30, headers={"authorization": f"Bearer {self.key}"}) as http:
            for turn in turns:
                tool, arguments = self.choose()
                key = f"{self.number}-{turn}"
                answer = await self.insist(http, tool, {**arguments, "idempotency_key": key})
                if answer.get("isError"):
                    self.refusal_counts[answer["content"][0]["text"].split('"')[3]] += 1
                    continue
                change = answer["structuredContent"]
                self.acknowledged[key] = [entry["id"] for entry in change["entries"]]
                if change["hold"]:
                    self.holds.append(change["hold"]["id"])

    def choose(self) -> tuple[str, dict[str, Any]]:
        pool, other = self.random.sample(range(1, POOL_COUNT + 1), 2)
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
