"""Watchers of one event: many streams held open, and the time from a registration until each has told it.

python -m benchmarks.watchers [--help]
"""

import os
import subprocess
from statistics import median
from typing import Annotated, Any

import httpx2
import msgspec
import psutil
import typer
import uvloop
from rich.table import Table

from benchmarks import load
from benchmarks.stage import holdfast, say, server
from benchmarks.streams import fan_out, is_listening
from holdfast.kit.postgres import bundled


def main(
    watchers: Annotated[int, typer.Option(help="Streams held open.")] = 5_000,
    rounds: Annotated[int, typer.Option(help="Runs, each with a new server; the median is reported.")] = 3,
) -> None:
    """Measure the time from a registration to the last of the watchers, and the memory of a stream."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "API_ORGANIZER_REGISTER_RATE_LIMIT": "1000",
        "MAX_STREAMS_PER_ADDRESS": str(watchers + 1),
        "MAX_STREAMS": str(watchers + 1),
        "MAX_CONNECTIONS_PER_ADDRESS": str(watchers + 100),
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    seconds: list[float] = []
    sizes: list[float] = []
    for number in range(rounds):
        with server([holdfast(), "events", "serve", "--port", "0"], environment) as port:
            key, watched, other = _events(port, number)
            process = next(process for process in psutil.process_iter(["cmdline"]) if is_listening(process, port))
            before = process.memory_info().rss
            changes = _registration(key, other), _registration(key, watched)
            took, memory = uvloop.run(fan_out(port, f"/events/{watched}/stream", watchers, process, changes))
            seconds.append(took)
            sizes.append((memory - before) / watchers / 1024)
            say(f"  {took * 1000:,.0f} ms", style="dim")
    table = Table(title=f"Watchers of one event, median of {rounds}")
    for heading in ("what", "ours", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    table.add_row(f"registration → last of {watchers:,} watchers", f"{median(seconds) * 1000:,.0f} ms", "< 1 s")
    table.add_row("memory of a stream", f"{median(sizes):.1f} KiB", "")
    say(table)


def _events(port: int, number: int) -> tuple[str, int, int]:
    """The key of a new organizer, and two events."""
    base, slug = f"http://127.0.0.1:{port}/api", f"watched-{number}"
    organizer = {"name": "Benchmark", "email": f"{slug}@example.com", "slug": slug}
    answer = httpx2.post(f"{base}/organizers/register", json={"organizer": organizer}).json()
    key = answer["data"]["api_key"]["key"]
    event: dict[str, Any] = {"title": "Life drawing", "body": "Bring a pencil.", "price": 0, "pricing_mode": "free"}
    event |= {"capacity": 1_000, "datetime": "2099-01-01T00:00:00Z"}
    watched, other = (
        httpx2.post(f"{base}/events", json={"event": event}, headers={"X-API-Key": key}).json()["data"]["id"]
        for _ in range(2)
    )
    return key, watched, other


def _registration(key: str, event_id: int) -> bytes:
    body = {"registration": {"event_id": event_id, "email": "ann@example.com"}}
    return load.request("POST", "/api/registrations", key, msgspec.json.encode(body))


if __name__ == "__main__":
    typer.run(main)
