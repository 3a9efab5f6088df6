"""Registrations: accepted, settled, seen. Ours beside a bare Starlette handler with the same group commit, in one run.

python -m benchmarks.registrations [--help]
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import httpx2
import msgspec
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.stage import Best, holdfast, row, say, server
from holdfast.events.seats import settlement
from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.database import Database


def main(
    requests: Annotated[int, typer.Option(help="Registrations to send in each run.")] = 40_000,
    rounds: Annotated[int, typer.Option(help="Runs of each; the best is reported.")] = 3,
    pace: Annotated[int, typer.Option(help="Registrations a second for the latency of settlement.")] = 2_000,
) -> None:
    """Measure intake, settlement, 202 to visible, and polls."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        # Otherwise the server under load also writes a mail for each registration, which is work of another kind.
        "API_REGISTRATION_NOTIFY": "false",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    measure(environment, url, requests, rounds, pace)


def measure(environment: dict[str, str], url: str, requests: int, rounds: int, pace: int) -> None:
    table = Table(title=f"Registrations: {requests:,} a run, best of {rounds}, 64 connections")
    for heading in ("what", "ours", "floor", "ours/floor", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")

    command = [holdfast(), "events", "serve", "--port", "0", "--no-background"]
    with server(command, environment) as ours, server([sys.executable, "-m", "benchmarks.bare"], environment) as bare:
        key, event = event_at(ours, requests * (rounds + 1))

        def registrations(run: int, path: str, key: str) -> Iterator[bytes]:
            for number in range(requests):
                body = msgspec.json.encode(
                    {"registration": {"event_id": event, "email": f"r{run}n{number}@example.com"}}
                )
                yield load.request("POST", path, key, body)

        accepted = Best()
        floor = Best()
        for run in range(rounds):
            floor.take(load.run(bare, iter(list(registrations(run, "/bare", "")))), 202)
            accepted.take(load.run(ours, iter(list(registrations(run, "/api/registrations", key)))), 202)
        row(table, "accepted by new e-mail, a second", accepted, floor, "≥ 0.9 of the floor")

        ids = _public_ids(url)

        def known(event: int) -> Iterator[bytes]:
            for number in range(requests):
                body = msgspec.json.encode({"registration": {"event_id": event, "user_id": ids[number]}})
                yield load.request("POST", "/api/registrations", key, body)

        by_id = Best()
        for _ in range(rounds):
            _, event = event_at(ours, requests, key)
            by_id.take(load.run(ours, iter(list(known(event)))), 202)
        row(table, "accepted by user id, a second", by_id, floor, "≥ 0.9 of the floor")

        seconds, count = asyncio.run(settled(url))
        table.add_row("settled, a second", f"{count / seconds:,.0f}", "", "", "≥ 20,000")

        polls, bare_polls = Best(), Best()
        for _ in range(rounds):
            paths = [f"{event}/{id}" for id in ids[:requests]]
            bare_polls.take(load.run(bare, (load.request("GET", f"/bare/{path}") for path in paths)), 200)
            polls.take(
                load.run(ours, iter([load.request("GET", f"/api/registrations/{path}", key) for path in paths])), 200
            )
        row(table, "status polls, a second", polls, bare_polls, "≥ 0.75 of the floor")

    with server([holdfast(), "events", "serve", "--port", "0"], environment) as ours:
        key, event = event_at(ours, 10 * pace)

        def steady() -> Iterator[bytes]:
            for number in range(10 * pace):
                body = msgspec.json.encode({"registration": {"event_id": event, "email": f"s{number}@example.com"}})
                yield load.request("POST", "/api/registrations", key, body)

        def poll(body: bytes) -> bytes:
            return load.request("GET", msgspec.json.decode(body)["next"]["url"], key)

        seen = load.paced(ours, steady(), pace, poll)
        table.add_row(
            f"202 to visible at {len(seen.latencies) / seen.seconds:,.0f}/s, p50 / p99",
            f"{seen.percentile(0.5) * 1000:.0f} / {seen.percentile(0.99) * 1000:.0f} ms",
            "",
            "",
            "p99 < 100 ms",
        )
    say(table)


def event_at(port: int, capacity: int, key: str = "") -> tuple[str, int]:
    """An event with a number of seats, and its organizer's key."""
    base = f"http://127.0.0.1:{port}/api"
    if not key:
        name = f"bench-{time.time_ns()}"
        organizer = {"name": "Benchmark", "email": f"{name}@example.com", "slug": name}
        answer = httpx2.post(f"{base}/organizers/register", json={"organizer": organizer}).json()
        key = answer["data"]["api_key"]["key"]
    event: dict[str, Any] = {"title": "Sale", "body": "-", "datetime": "2099-01-01T00:00:00Z", "price": 0}
    event |= {"pricing_mode": "free", "capacity": capacity}
    answer = httpx2.post(f"{base}/events", json={"event": event}, headers={"X-API-Key": key}).json()
    return key, answer["data"]["id"]


def _public_ids(url: str) -> list[str]:
    async def read() -> list[str]:
        database = Database(url, None, size=3, name="bench")
        async with database.pool:
            rows = await database.read(lambda reader: reader.tuples("select public_id from users where role = 'user'"))
        return [id for (id,) in rows]

    return asyncio.run(read())


async def settled(url: str) -> tuple[float, int]:
    """Settle everything that was accepted; the seconds it took and how many there were."""
    settings = Settings(database_url=url)  # pyright: ignore[reportCallIssue]
    database = EVENTS.database(settings)
    async with database.pool:
        started = time.perf_counter()
        count = await settlement.settle(database)
        return time.perf_counter() - started, count


if __name__ == "__main__":
    typer.run(main)
