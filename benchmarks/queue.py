"""Waiting rooms: joins beside a bare handler with the same group commit; status in a long line beside a short one.

python -m benchmarks.queue [--help]
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import httpx2
import msgspec
import psycopg
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.stage import Best, holdfast, row, say, server
from holdfast.kit.postgres import bundled


def main(
    requests: Annotated[int, typer.Option(help="Requests in each run.")] = 40_000,
    rounds: Annotated[int, typer.Option(help="Runs of each; the best is reported.")] = 3,
    crowd: Annotated[int, typer.Option(help="Visitors in the long line.")] = 1_000_000,
) -> None:
    """Measure joins and status polls."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "API_QUEUE_JOIN_RATE_LIMIT": "1000000000",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    table = Table(title=f"Waiting rooms: {requests:,} a run, best of {rounds}, 64 connections")
    for heading in ("what", "ours", "floor", "ours/floor", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")

    command = [holdfast(), "events", "serve", "--port", "0", "--no-background"]
    with server(command, environment) as ours, server([sys.executable, "-m", "benchmarks.bare"], environment) as bare:
        key, queue = queue_at(ours)

        def bodies(run: int) -> list[bytes]:
            body = {"registration": {"event_id": queue, "email": ""}}
            joins: list[bytes] = []
            for number in range(requests):
                body["registration"]["email"] = f"r{run}n{number}@example.com"
                joins.append(load.request("POST", "/bare", "", msgspec.json.encode(body)))
            return joins

        def joins(run: int) -> Iterator[bytes]:
            for number in range(requests):
                body = msgspec.json.encode({"visitor_id": f"r{run}n{number}@example.com"})
                yield load.request("POST", f"/api/queues/{queue}/join", key, body)

        joined, floor = Best(), Best()
        for run in range(rounds):
            floor.take(load.run(bare, iter(bodies(run))), 202)
            joined.take(load.run(ours, iter(list(joins(run)))), 202)
        row(table, "joins, a second", joined, floor, "≥ 0.95 of the floor")

        def polls(queue: int, visitors: int) -> Iterator[bytes]:
            for number in range(requests):
                # All over the line, and never two neighbours.
                visitor = f"visitor{number * 7_919 % visitors}"
                yield load.request("GET", f"/api/queues/{queue}/status/{visitor}", key)

        lines = {visitors: queue_at(ours, key)[1] for visitors in (1_000, crowd)}
        for visitors, line in lines.items():
            _fill(url, line, visitors)
        short, long = Best(), Best()
        for _ in range(rounds):
            short.take(load.run(ours, iter(list(polls(lines[1_000], 1_000)))), 200)
            long.take(load.run(ours, iter(list(polls(lines[crowd], crowd)))), 200)
        row(table, f"status with {crowd:,} waiting, beside 1,000, a second", long, short, "≥ 0.9 of it")
    say(table)


def queue_at(port: int, key: str = "") -> tuple[str, int]:
    """An organizer's key and a queue that releases no visitor meanwhile."""
    base = f"http://127.0.0.1:{port}/api"
    if not key:
        name = f"bench-{time.time_ns()}"
        organizer = {"name": "Benchmark", "email": f"{name}@example.com", "slug": name}
        answer = httpx2.post(f"{base}/organizers/register", json={"organizer": organizer}).json()
        key = answer["data"]["api_key"]["key"]
    queue: dict[str, Any] = {"title": "Sale", "release_rate": 60, "token_ttl_minutes": 10}
    queue |= {"target_url": "https://shop.example/sale"}
    answer = httpx2.post(f"{base}/queues", json={"queue_event": queue}, headers={"X-API-Key": key}).json()
    return key, answer["data"]["id"]


def _fill(url: str, queue: int, visitors: int) -> None:
    """Let visitors wait, without asking for each."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "insert into queue_visitors (queue_id, visitor_id, ticket)"
            " select %s, 'visitor' || number - 1, number from generate_series(1, %s) as number",
            [queue, visitors],
        )
        connection.execute("update queues set tickets = %s where id = %s", [visitors, queue])
        connection.execute("vacuum (analyze) queue_visitors, queues")


if __name__ == "__main__":
    typer.run(main)
