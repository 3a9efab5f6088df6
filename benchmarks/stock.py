"""Stock: changes on a hot pool and on many, availability, streams. Each beside its floor, in one run.

python -m benchmarks.stock [--help]
"""

import asyncio
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import httpx2
import msgspec
import psutil
import psycopg
import typer
import uvloop
from rich.table import Table

from benchmarks import load
from benchmarks.stage import Best, holdfast, row, say, server
from benchmarks.streams import fan_out, is_listening
from holdfast.kit.postgres import bundled

SHOP = "bench.myshopify.com"
LARGE_SHOP = "large.myshopify.com"
VARIANTS = 3
"""How many variants draw on each pool of the large shop."""


def main(
    requests: Annotated[int, typer.Option(help="Requests in each run.")] = 30_000,
    rounds: Annotated[int, typer.Option(help="Runs of each; the best is reported.")] = 3,
    variants: Annotated[int, typer.Option(help="Variants in the availability answer.")] = 5_000,
    subscribers: Annotated[int, typer.Option(help="Streams held open.")] = 10_000,
) -> None:
    """Measure stock changes, availability and streams."""
    directory = bundled.scratch_directory()
    url = bundled.database_url(directory, "inventory")
    environment = {
        **os.environ,
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
        "INVENTORY_DATABASE_URL": url,
        "EVENTS_DATABASE_URL": bundled.database_url(directory, "bare"),
        "MCP_RATE_LIMIT": "1000000000",
        "MAX_CONNECTIONS_PER_ADDRESS": "20000",
        "MAX_STREAMS_PER_ADDRESS": "20000",
        "MAX_STREAMS_PER_SHOP": "20000",
        "HOLDFAST_DATA_DIR": str(directory),
    }
    subprocess.run([holdfast(), "inventory", "migrate"], env=environment, check=True, capture_output=True)
    key, large = added_shop(environment, SHOP), added_shop(environment, LARGE_SHOP)
    table = Table(title=f"Stock: {requests:,} requests a run, best of {rounds}, 64 connections")
    for heading in ("what", "ours", "floor", "ours/floor", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    command = [holdfast(), "inventory", "serve", "--port", "0", "--no-background"]
    with server(command, environment) as ours:
        measure_changes(table, ours, key, make_pools(ours, key, 1_000), environment, requests, rounds)
        pools = make_pools(ours, large, 3_000)
        make_variants(ours, large, len(pools))
        measure_changes(table, ours, large, pools, environment, requests, rounds, f", {VARIANTS} variants each")
        table.add_row("the same by SELECT FOR UPDATE, 64 connections", f"{locked_by_row(url):,.0f}", "", "", "")
    with server(command, environment) as ours:
        shelf = stock_shelves(ours, key, variants)
        measure_availability(table, ours, environment, requests, rounds, variants)
        measure_streams(table, ours, key, shelf, environment, subscribers)
    say(table)


def measure_changes(
    table: Table,
    ours: int,
    key: str,
    pools: Sequence[int],
    environment: dict[str, str],
    requests: int,
    rounds: int,
    kind: str = "",
) -> None:
    """Adjustments, a ledger row each, beside a bare handler that stores a row with the same group commit.

    kind    what the rows of the table say of the pools
    """
    chance = random.Random(7)

    def changes(pools: Sequence[int]) -> list[bytes]:
        return [
            call(key, "adjust_pool_quantity", {"pool_id": chance.choice(pools), "delta": chance.choice([-1, 1, 2])})
            for _ in range(requests)
        ]

    body = msgspec.json.encode({"registration": {"event_id": 1, "email": "someone@example.com"}})
    stored = [load.request("POST", "/bare", body=body)] * requests
    with server([sys.executable, "-m", "benchmarks.bare"], environment) as bare:
        floor, hot, many = Best(), Best(), Best()
        for _ in range(rounds):
            floor.take(load.run(bare, iter(stored)), 202)
            hot.take(load.run(ours, iter(changes(pools[:1]))), 200)
            many.take(load.run(ours, iter(changes(pools))), 200)
    row(table, f"changes of one hot pool{kind}, a second", hot, floor, "≥ 0.65 of the floor")
    row(table, f"changes of {len(pools):,} pools{kind}, a second", many, floor, "≥ 0.55 of the floor")


def stock_shelves(ours: int, key: str, variants: int) -> int:
    """Make pools for a number of variants, 250 in each; the id of the last pool."""
    shelf = 0
    for start in range(0, variants, 250):
        members = [
            {
                "variant_gid": f"gid://shopify/ProductVariant/{40000000000 + start + number}",
                "units_per_sale": number + 1,
            }
            for number in range(min(250, variants - start))
        ]
        arguments = {"name": f"Shelf {start}", "quantity": 1_000_000, "members": members}
        shelf = tool_answer(ours, key, "create_pool", arguments)["pool"]["id"]
    return shelf


def measure_availability(
    table: Table, ours: int, environment: dict[str, str], requests: int, rounds: int, variants: int
) -> None:
    """The storefront's answer, beside an application that answers as many bytes, always the same."""
    path = signed_path(environment)
    plain = httpx2.get(f"http://127.0.0.1:{ours}{path}", headers={"accept-encoding": "identity"})
    small = httpx2.get(f"http://127.0.0.1:{ours}{path}")
    assert len(plain.json()["variants"]) == variants
    for name, encoding, size, count in (
        ("gzip", "gzip", int(small.headers["content-length"]), requests),
        ("plain", "identity", len(plain.content), requests // 10),
    ):
        best, floor = Best(), Best()
        with server([sys.executable, "-m", "benchmarks.constant", str(size)], environment) as constant:
            for _ in range(rounds):
                request = load.request("GET", signed_path(environment), Accept_Encoding=encoding)
                floor.take(load.run(constant, iter([request] * count)), 200)
                best.take(load.run(ours, iter([request] * count)), 200)
        row(table, f"availability of {variants:,} variants, {name}, {size / 1000:.0f} kB", best, floor, "≥ 0.7 of it")


def measure_streams(
    table: Table, ours: int, key: str, shelf: int, environment: dict[str, str], subscribers: int
) -> None:
    """One change of a shelf, and the time until each of this many streams has told it."""
    stream = httpx2.get(f"http://127.0.0.1:{ours}{signed_path(environment)}").json()["stream_url"]
    path = "/" + stream.split("/", 3)[3]
    process = next(process for process in psutil.process_iter(["cmdline"]) if is_listening(process, ours))
    before = process.memory_info().rss
    changes = (
        call(key, "adjust_pool_quantity", {"pool_id": 1, "delta": 1}),
        call(key, "set_pool_quantity", {"pool_id": shelf, "quantity": 77}),
    )
    seconds, after = uvloop.run(fan_out(ours, path, subscribers, process, changes))
    table.add_row(f"change → last of {subscribers:,} streams", f"{seconds * 1000:,.0f} ms", "", "", "< 1 s")
    table.add_row("memory of a stream", f"{(after - before) / subscribers / 1024:.1f} KiB", "", "", "12.7 KiB")


def locked_by_row(url: str, connections: int = 64, seconds: float = 5) -> float:
    """How often a second one row can be changed by the usual four statements, each with a row of history."""

    async def drive() -> float:
        done = 0
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("create table naive_pool (id int primary key, on_hand bigint)")
            await connection.execute("create table naive_ledger (id bigserial primary key, delta bigint, after bigint)")
            await connection.execute("insert into naive_pool values (1, 1000000)")
        until = time.perf_counter() + seconds

        async def one() -> None:
            nonlocal done
            async with await psycopg.AsyncConnection.connect(url) as connection:
                while time.perf_counter() < until:
                    cursor = await connection.execute("select on_hand from naive_pool where id = 1 for update")
                    [on_hand] = await cursor.fetchone() or [0]
                    await connection.execute("update naive_pool set on_hand = %s where id = 1", [on_hand - 1])
                    await connection.execute("insert into naive_ledger (delta, after) values (-1, %s)", [on_hand - 1])
                    await connection.commit()
                    done += 1

        await asyncio.gather(*(one() for _ in range(connections)))
        return done / seconds

    return uvloop.run(drive())


def added_shop(environment: dict[str, str], domain: str) -> str:
    """The key of a new shop."""
    added = subprocess.run(
        [holdfast(), "inventory", "shop", "add", domain], env=environment, check=True, capture_output=True, text=True
    )
    return added.stdout.splitlines()[-1]


def signed_path(environment: dict[str, str]) -> str:
    """The path of the availability endpoint, signed."""
    signed = subprocess.run(
        [holdfast(), "inventory", "sign-proxy-url", SHOP], env=environment, check=True, capture_output=True, text=True
    )
    return "/" + signed.stdout.strip().split("/", 3)[3]


def make_pools(port: int, key: str, count: int) -> list[int]:
    """The ids of new pools, each with a million units."""
    rows = [f"Pool {number},1000000" for number in range(count)]
    imported(port, key, "pools", "name,quantity", rows)
    ids: list[int] = []
    cursor = ""
    while cursor is not None:
        page = tool_answer(port, key, "list_pools", {"limit": 200, "cursor": cursor})
        ids += [pool["id"] for pool in page["pools"]]
        cursor = page["next_cursor"]
    return ids


def make_variants(port: int, key: str, pools: int) -> None:
    """Variants that draw on the pools made before, each on one."""
    gids = itertools.count(60_000_000_000)
    rows = [
        f"Pool {number},gid://shopify/ProductVariant/{next(gids)},1" for number in range(pools) for _ in range(VARIANTS)
    ]
    imported(port, key, "members", "pool,variant_gid,units_per_sale", rows)


def imported(port: int, key: str, kind: str, columns: str, rows: Sequence[str]) -> None:
    """Import a spreadsheet, in parts that the service takes."""
    for start in range(0, len(rows), 2_000):
        text = "\n".join([columns, *rows[start : start + 2_000]]) + "\n"
        answer = tool_answer(port, key, "import_csv", {"kind": kind, "text": text, "dry_run": False})
        assert answer["applied"], answer


def tool_answer(port: int, key: str, tool: str, arguments: dict[str, Any]) -> Any:
    """What a tool answers."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx2.post(f"http://127.0.0.1:{port}/mcp", json=message, headers=headers, timeout=60).json()
    return answer["result"]["structuredContent"]


def call(key: str, tool: str, arguments: dict[str, Any], era: str = "2025-11-25") -> bytes:
    """A call of a tool as it travels."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    extra: dict[str, str] = {}
    if era == "2026-07-28":
        extra = {"Mcp_Method": "tools/call", "Mcp_Name": tool}
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    return load.request(
        "POST",
        "/mcp",
        body=body,
        Authorization=f"Bearer {key}",
        Accept="application/json, text/event-stream",
        MCP_Protocol_Version=era,
        **extra,
    )


if __name__ == "__main__":
    typer.run(main)
