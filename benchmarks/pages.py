"""Pages: that of an event, and its form in a frame, beside a constant page of the same size; polls beside a crowd.

python -m benchmarks.pages [--help]
"""

import asyncio
import itertools
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

import httpx2
import typer
import uvloop
from rich.table import Table

from benchmarks import load
from benchmarks.stage import Best, holdfast, row, say, server
from holdfast.kit.postgres import bundled

SENTENCE = (
    "An evening of **drawing** from life, for beginners and for those who draw every day. More at https://a.test/x. "
)

TIMEOUT_SECONDS = 10
"""Seconds after which a form without an answer is counted with the status 0."""


class PagesScene(NamedTuple):
    """An organizer's key, its event, and the address at which a registered person polls."""

    key: str
    slug: str
    event: int
    poll: str


def main(
    requests: Annotated[int, typer.Option(help="Requests in each run.")] = 20_000,
    rounds: Annotated[int, typer.Option(help="Runs of each; the best is reported, of polls the median.")] = 3,
    pace: Annotated[int, typer.Option(help="Forms a second that the crowd sends.")] = 200,
) -> None:
    """Measure the page of an event, the form in a frame, and polls while a crowd sends forms."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "FORM_RATE_LIMIT": "1000000000",
        "FORM_EVENT_RATE_LIMIT": "1000000000",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    table = Table(title=f"Pages: {requests:,} a run, best of {rounds} (polls: median), 64 connections")
    for heading in ("what", "ours", "floor", "ours/floor", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with server([holdfast(), "events", "serve", "--port", "0", "--no-background"], environment) as ours:
        scene = create_scene(ours)
        paths = {
            "page of an event": f"/organizers/{scene.slug}/events/{scene.event}",
            "form in a frame": f"/events/{scene.event}/embed",
        }
        for what, path in paths.items():
            size = len(httpx2.get(f"http://127.0.0.1:{ours}{path}").content)
            with server([sys.executable, "-m", "benchmarks.constant", str(size)], environment) as constant:
                rates, floor = Best(), Best()
                for _ in range(rounds):
                    floor.take(load.run(constant, itertools.repeat(load.request("GET", path), requests)), 200)
                    rates.take(load.run(ours, itertools.repeat(load.request("GET", path), requests)), 200)
            row(table, f"{what}, {size / 1000:.1f} kB, a second", rates, floor, "≥ 0.5 of the floor")
    measured: list[tuple[load.Result, load.Result]] = []
    for _ in range(rounds):
        with server([holdfast(), "events", "serve", "--port", "0"], environment) as ours:
            measured.append(uvloop.run(_alone_and_in_a_crowd(ours, pace)))
    for share in (0.5, 0.99):
        alone, crowded = ([latencies.percentile(share) for latencies in runs] for runs in zip(*measured, strict=True))
        slower = [one / other for one, other in zip(crowded, alone, strict=True)]
        table.add_row(
            f"polls while {pace} forms a second come, p{share * 100:.0f}",
            f"{median(crowded) * 1000:.1f} ms",
            f"{median(alone) * 1000:.1f} ms",
            f"{median(slower):.2f}",
            "≤ 2 times as long",
        )
    say(table)


async def _alone_and_in_a_crowd(port: int, pace: int) -> tuple[load.Result, load.Result]:
    """Polls of one event: alone, and while forms for another one come."""
    mine, theirs = create_scene(port), create_scene(port)
    polls = itertools.repeat(load.request("GET", mine.poll, mine.key), 5_000)
    alone = await _one_after_another(port, polls)
    over = asyncio.Event()
    crowd = asyncio.create_task(send_forms(port, theirs, pace, over))
    await asyncio.sleep(1)
    polls = itertools.repeat(load.request("GET", mine.poll, mine.key), 5_000)
    crowded = await _one_after_another(port, polls)
    over.set()
    say(f"  forms: {await crowd}", style="dim")
    return alone, crowded


async def _one_after_another(port: int, requests: Iterator[bytes]) -> load.Result:
    """Send requests over four connections."""
    latencies: list[float] = []
    statuses: Counter[int] = Counter()

    async def one(connection: load.Connection) -> None:
        for request in requests:
            sent = time.perf_counter()
            status, _ = await connection.send(request)
            latencies.append(time.perf_counter() - sent)
            statuses[status] += 1

    started = time.perf_counter()
    connections = [await load.connect(port) for _ in range(4)]
    await asyncio.gather(*(one(connection) for connection in connections))
    return load.Result(time.perf_counter() - started, statuses, sorted(latencies))


async def send_forms(port: int, scene: PagesScene, pace: int, over: asyncio.Event, name: str = "crowd") -> Counter[int]:
    """Send forms for an event at a steady pace, each by another person, until it is over."""
    path = f"/events/{scene.event}/embed"
    async with httpx2.AsyncClient() as client:
        form = (await client.get(f"http://127.0.0.1:{port}{path}")).text
    (token,) = re.findall(r'name="token" value="([^"]+)"', form)
    statuses: Counter[int] = Counter()
    idle: asyncio.Queue[load.Connection] = asyncio.Queue()
    for _ in range(64):
        idle.put_nowait(await load.connect(port))

    async def send(number: int) -> None:
        connection = await idle.get()
        fields = {"email": f"{name}{number}@example.com", "name": "Ann", "website": "", "token": token}
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                status, _ = await connection.send(_form(path, fields))
        except (TimeoutError, ConnectionError):
            status, connection = 0, await load.connect(port)
        statuses[status] += 1
        idle.put_nowait(connection)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
            if (ahead := started + number / pace - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            group.create_task(send(number))
    return statuses


def _form(path: str, fields: dict[str, str]) -> bytes:
    """A form as it travels."""
    body = urlencode(fields).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def create_scene(port: int) -> PagesScene:
    base = f"http://127.0.0.1:{port}/api"
    slug = f"bench-{time.time_ns()}"
    organizer = {"name": "Benchmark", "email": f"{slug}@example.com", "slug": slug}
    answer = httpx2.post(f"{base}/organizers/register", json={"organizer": organizer}).json()
    key = {"X-API-Key": answer["data"]["api_key"]["key"]}
    event: dict[str, Any] = {"title": "Life drawing", "body": "\n\n".join([5 * SENTENCE] * 18), "price": 0}
    event |= {"pricing_mode": "free", "capacity": 1_000_000, "datetime": "2099-01-01T00:00:00Z"}
    id = httpx2.post(f"{base}/events", json={"event": event}, headers=key).json()["data"]["id"]
    person = {"registration": {"event_id": id, "email": "one@example.com"}}
    poll = httpx2.post(f"{base}/registrations", json=person, headers=key).json()["next"]["url"]
    return PagesScene(key["X-API-Key"], slug, id, poll)


if __name__ == "__main__":
    typer.run(main)
