"""A crowd that looks and waits, without a cache and behind the one of `deploy/nginx/holdfast.conf`.

python -m benchmarks.cache [--help]
"""

import contextlib
import itertools
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import httpx2
import psutil
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.stage import holdfast, say, server
from holdfast.kit.postgres import bundled

CONFIGURATION = Path(__file__).parents[1] / "deploy/nginx/holdfast.conf"
LANGUAGES = ("en-US,en;q=0.9", "de-DE,de;q=0.9,en;q=0.7", "en-GB,en;q=0.8,de;q=0.5", "fr-FR,fr;q=0.9", "de", "en")
VISITORS = 200
WARM_SECONDS = 2.0


class EdgeScene(NamedTuple):
    """An event that is full, the path of its organizer, and a waiting room with the secrets of visitors who wait."""

    event: int
    organizer: str
    queue: int
    secrets: list[str]


class Kind(NamedTuple):
    """What a crowd requests. `operation`: its name in the metrics of the service; `status`: that of the answers."""

    name: str
    operation: str
    requests: list[bytes]
    status: int = 200


class Seen(NamedTuple):
    """What a crowd and the service saw.

    reached      requests a second that reached the service
    processor    the processor seconds of the service, a second
    """

    result: load.Result
    reached: float
    processor: float


def main(
    seconds: Annotated[float, typer.Option(help="Seconds of each run.")] = 10,
    clients: Annotated[int, typer.Option(help="Connections, at most 500 from one address.")] = 256,
) -> None:
    """Measure pages and polls of a crowd with and without a cache."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "TRUSTED_PROXIES": "127.0.0.1",
        "QUEUE_PAGE_JOIN_RATE_LIMIT": "1000000000",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    table = Table(title=f"A crowd of {clients} clients, {seconds:g} s each")
    for heading in ("what", "cache", "a second", "reach the service", "p50", "p99", "its processor"):
        table.add_column(heading, justify="left" if heading in ("what", "cache") else "right")
    with server([holdfast(), "events", "serve", "--port", "0"], environment) as service, cache(service) as cached:
        for kind in _kinds(service, _scene(service)):
            for place, port in (("no", service), ("yes", cached)):
                _run(port, service, kind, clients, WARM_SECONDS)
                seen = _run(port, service, kind, clients, seconds)
                table.add_row(
                    kind.name,
                    place,
                    f"{seen.result.per_second:,.0f}",
                    f"{seen.reached:,.1f}",
                    f"{seen.result.percentile(0.5) * 1000:.1f} ms",
                    f"{seen.result.percentile(0.99) * 1000:.1f} ms",
                    f"{seen.processor:.0%}",
                )
    say(table)


@contextlib.contextmanager
def cache(service: int) -> Generator[int]:
    """nginx in front of a service, as in production but without TLS. Gives the port that it listens on."""
    program = shutil.which("nginx")
    if program is None:
        raise SystemExit("nginx is not installed.")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        port, unused = _free_port(), _free_port()
        site = CONFIGURATION.read_text(encoding="utf-8")
        site = re.sub(r"(?m)^ *(ssl_certificate.*|server 10\.0\.0\.12:.*)\n", "", site)
        for printed, replacement in {
            "10.0.0.11:8002": f"127.0.0.1:{service}",
            "10.0.0.11:8001": f"127.0.0.1:{unused}",
            "listen 443 ssl http2;": f"listen 127.0.0.1:{port};",
            "listen 80;": f"listen 127.0.0.1:{unused};",
            "/var/cache/holdfast": f"{directory}/cache",
        }.items():
            site = site.replace(printed, replacement)
        temporary = " ".join(f"{kind}_temp_path {name}/{kind};" for kind in ("client_body", "proxy", "fastcgi"))
        temporary += f" uwsgi_temp_path {name}/uwsgi; scgi_temp_path {name}/scgi;"
        user = "user root;" if os.geteuid() == 0 else ""
        (directory / "nginx.conf").write_text(
            f"{user} daemon off; pid {name}/pid; error_log stderr; events {{ worker_connections 4096; }}\n"
            f"http {{ access_log off; keepalive_requests 1000000000; {temporary}\n{site}}}\n"
        )
        process = subprocess.Popen([program, "-p", name, "-c", f"{name}/nginx.conf"])
        try:
            while not _listens(port):
                if process.poll() is not None:
                    raise SystemExit("nginx did not start.")
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _run(port: int, service: int, kind: Kind, clients: int, seconds: float) -> Seen:
    before, processor = _reached(service, kind.operation), _processor_seconds(service)
    until = time.perf_counter() + seconds
    requests: Iterator[bytes] = itertools.takewhile(
        lambda _: time.perf_counter() < until, itertools.cycle(kind.requests)
    )
    result = load.run(port, requests, clients)
    if set(result.statuses) != {kind.status}:
        raise SystemExit(f"{kind.name}: not every answer was {kind.status}: {result.statuses}")
    reached = _reached(service, kind.operation) - before
    return Seen(result, reached / result.seconds, (_processor_seconds(service) - processor) / result.seconds)


def _reached(port: int, operation: str) -> float:
    metrics = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
    counts = re.findall(rf'^holdfast_requests_total{{operation="{operation}",.*}} (\S+)$', metrics, re.MULTILINE)
    return sum(map(float, counts))


def _processor_seconds(port: int) -> float:
    """The processor seconds of the process that listens on a port."""
    for connection in psutil.net_connections("tcp4"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
            times = psutil.Process(connection.pid).cpu_times()
            return times.user + times.system
    raise SystemExit("The service has ended.")


def _kinds(port: int, scene: EdgeScene) -> list[Kind]:
    page, form = f"{scene.organizer}/events/{scene.event}", f"/events/{scene.event}/embed"
    room = f"/queues/{scene.queue}"
    etags = {
        language: httpx2.get(f"http://127.0.0.1:{port}{page}", headers={"Accept-Language": language}).headers["etag"]
        for language in LANGUAGES
    }
    polls = [load.request("GET", page, Accept_Language=name, If_None_Match=etag) for name, etag in etags.items()]
    places = [load.request("GET", room, Cookie=f"waiting_room_{scene.queue}={secret}") for secret in scene.secrets]
    return [
        Kind("event that is full", "event_page", _in_all_languages(page)),
        Kind("the same, unchanged (304)", "event_page", polls, 304),
        Kind("organizer", "organizer_page", _in_all_languages(scene.organizer)),
        Kind("form in a frame", "framed_form", _in_all_languages(form)),
        Kind("waiting room, own page", "waiting_room", places),
        Kind("waiting room, progress", "waiting_room_progress", _in_all_languages(f"{room}/progress")),
    ]


def _in_all_languages(path: str) -> list[bytes]:
    return [load.request("GET", path, Accept_Language=language) for language in LANGUAGES]


def _scene(port: int) -> EdgeScene:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
        slug = f"bench-{time.time_ns()}"
        organizer = {"name": "Benchmark", "email": f"{slug}@example.com", "slug": slug}
        made = client.post("/api/organizers/register", json={"organizer": organizer}).json()
        client.headers["X-API-Key"] = made["data"]["api_key"]["key"]
        event: dict[str, Any] = {"title": "Life drawing", "body": "An evening of **drawing**.\n\n" * 60, "price": 0}
        event |= {"pricing_mode": "free", "capacity": 1, "datetime": "2099-01-01T00:00:00Z"}
        id = client.post("/api/events", json={"event": event}).json()["data"]["id"]
        client.post("/api/registrations", json={"registration": {"event_id": id, "email": "one@example.com"}})
        queue: dict[str, Any] = {"title": "Sale", "release_rate": 1, "token_ttl_minutes": 5}
        queue |= {"target_url": "https://shop.example/", "starts_at": "2099-01-01T00:00:00Z"}
        queue_id = client.post("/api/queues", json={"queue_event": queue}).json()["data"]["id"]
        secrets = [f"{number:043}" for number in range(VISITORS)]
        for secret in secrets:
            client.get(f"/queues/{queue_id}", headers={"Cookie": f"waiting_room_{queue_id}={secret}"})
    return EdgeScene(id, f"/organizers/{slug}", queue_id, secrets)


if __name__ == "__main__":
    typer.run(main)
