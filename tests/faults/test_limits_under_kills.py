"""Agents with daily limits ask two processes from 64 connections while these are killed: none goes beyond its limit."""

import asyncio
import contextlib
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from holdfast.accounts.agents.limits import SetLimit
from holdfast.events.keys import operations as keys
from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.stock.ledger_audit import audit
from holdfast.kit.contract.caller import system
from holdfast.kit.security.http_client import HttpClient
from tests.faults.stored_order import register_organizer_with_event
from tests.helpers.events_service import pause_after, unlimited
from tests.helpers.inventory_service import unlimited as inventory_settings
from tests.helpers.processes import Process, kill_in_turn, running_processes
from tests.helpers.serving import PLAIN

CLIENTS = 64
LIMITS = (150, 40)
CALLS = 15_000 if "HOLDFAST_SOAK" in os.environ else 1_000


async def send(http: httpx2.AsyncClient, processes: list[Process], number: int, path: str, body: Any) -> Any:
    """The answer to a request. When a connection breaks or there is no room, it goes to another process."""
    for process in itertools.cycle(processes[number % 2 :] + processes[: number % 2]):
        with contextlib.suppress(httpx2.TransportError):
            response = await http.post(process.url + path, json=body)
            if response.status_code != 503:
                return response
            await asyncio.sleep(pause_after(0))
    raise AssertionError("it never ends")


async def test_no_key_registers_more_people_than_its_limit(database_url: str, tmp_path: Path) -> None:
    database = EVENTS.database(unlimited(database_url, tmp_path))
    await database.open()
    calls = iter(range(CALLS))
    accepted: list[set[str]] = [set() for _ in LIMITS]
    refusals = [0 for _ in LIMITS]
    with running_processes(database_url, tmp_path, 2) as processes:
        first_key, event_id = await register_organizer_with_event(processes[0], capacity=1_000)
        async with HttpClient(base_url=processes[0].url, headers={"X-API-Key": first_key}) as http:
            made = (await http.post("/api/keys", json={"api_key": {"name": "Second"}})).json()["data"]
        organizer_id, secrets = made["user_id"], (first_key, made["key"])
        for key_id, daily_limit in zip((made["id"] - 1, made["id"]), LIMITS, strict=True):
            command = SetLimit(key_id=key_id, daily_limit=daily_limit)
            await database.transact(
                lambda tx, command=command: keys.KEY_LIMITS.store_limit(tx, system(organizer_id), command)
            )
        for process in processes:  # it may still have the keys without limits in its cache
            process.kill()
            process.start()

        async def work(number: int, calls: Iterator[int]) -> None:
            key = number % 2
            async with HttpClient(verify=PLAIN, timeout=30, headers={"X-API-Key": secrets[key]}) as http:
                for call in calls:
                    email = f"p{random.Random(call).randrange(400)}@example.com"
                    body = {"registration": {"event_id": event_id, "email": email}}
                    response = await send(http, processes, number, "/api/registrations", body)
                    if response.status_code == 202:
                        accepted[key].add(email)
                    else:
                        assert response.json()["code"] == "daily_limit_reached", response.text
                        refusals[key] += 1

        async with kill_in_turn(processes) as kills:
            await asyncio.gather(*(work(number, calls) for number in range(CLIENTS)))
    await database.close()

    with psycopg.connect(database_url) as connection:
        used = [count for (count,) in connection.execute("select used from agent_limits order by key_id").fetchall()]
        emails = {
            email
            for (email,) in connection.execute("select email from registrations join users on id = user_id").fetchall()
        }
    assert used == list(LIMITS)
    assert len(emails) == sum(used)
    assert accepted[0] | accepted[1] == emails
    assert min(refusals) > 0
    assert len(kills) > 1


async def test_an_agent_never_moves_more_units_than_the_limit_of_the_shop(inventory_url: str, tmp_path: Path) -> None:
    database = INVENTORY.database(inventory_settings(inventory_url, tmp_path))
    await database.open()
    shop, key = await database.transact(lambda tx: shops.add(tx, "busy.myshopify.com"))
    [(key_id,)] = await database.read(lambda reader: reader.tuples("select id from api_keys"))
    calls = iter(range(CALLS))
    refusals: list[int] = []
    with running_processes(inventory_url, tmp_path, 2, service="inventory") as processes:

        def message(tool: str, **arguments: Any) -> Any:
            return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}

        headers = {"authorization": f"Bearer {key}"}
        async with HttpClient(verify=PLAIN, timeout=30, headers=headers) as http:
            for number in range(4):
                body = message("create_pool", name=f"Pool {number}", quantity=10_000)
                await send(http, processes, number, "/mcp", body)
        daily_limit = SetLimit(key_id=key_id, daily_limit=2_000)
        await database.transact(lambda tx: shops.SHOP_LIMITS.store_limit(tx, system(shop.id), daily_limit))
        for process in processes:  # it may still have the key without a limit in its cache
            process.kill()
            process.start()

        async def work(number: int, calls: Iterator[int]) -> None:
            async with HttpClient(verify=PLAIN, timeout=30, headers=headers) as http:
                for call in calls:
                    chance = random.Random(call)
                    pool, other = chance.sample(range(1, 5), 2)
                    units = chance.randint(1, 9)
                    body = chance.choice(
                        (
                            message("adjust_pool_quantity", pool_id=pool, delta=-units, idempotency_key=str(call)),
                            message(
                                "hold_quantity", pool_id=pool, quantity=units, ttl_s=600, idempotency_key=str(call)
                            ),
                            message(
                                "transfer_quantity",
                                from_pool_id=pool,
                                to_pool_id=other,
                                quantity=units,
                                idempotency_key=str(call),
                            ),
                        )
                    )
                    result = (await send(http, processes, number, "/mcp", body)).json()["result"]
                    if result.get("isError"):
                        assert "daily_limit_reached" in result["content"][0]["text"], result
                        refusals.append(call)

        async with kill_in_turn(processes) as kills:
            await asyncio.gather(*(work(number, calls) for number in range(CLIENTS)))

    [(used,)] = await database.read(lambda reader: reader.tuples("select used from agent_limits"))
    [(moved,)] = await database.read(
        lambda reader: reader.tuples(
            """
            select sum(case when delta = 0 then held_delta else -delta end) from ledger
             where idempotency_key is not null and (delta < 0 or held_delta > 0)
            """
        )
    )
    differences = await database.read(lambda reader: audit(reader, shop.id))
    await database.close()
    assert differences == []
    assert used == moved
    assert 2_000 - 9 < used <= 2_000
    assert refusals
    assert len(kills) > 1
