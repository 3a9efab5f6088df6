"""Ten times too much: what is accepted, what is refused, and who still gets an answer.

Clients come from many addresses. Each waits for its answer, and comes again after the seconds of Retry-After. The best
is what the service accepts without overload; then come 2, 5 and 10 times as many clients as that took.

python -m benchmarks.overload [--help]
"""

import itertools
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import httpx2
import msgspec
import psutil
import psycopg
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import load
from benchmarks.crowd import Crowd, Kind, Probe, Seen, percentile
from benchmarks.stage import holdfast, server
from benchmarks.streams import is_listening
from holdfast.accounts.sessions import digest, new_secret
from holdfast.kit.postgres import bundled

say = Console(width=160).print

SATURATING = (64, 128, 256, 500)
"""The numbers of clients among which the best is looked for."""

TIMES = (2, 5, 10)

MAX_CLIENTS = 5_000

PEOPLE = 20_000
"""The people who have a registration before the crowd comes."""


def main(
    only: Annotated[str, typer.Option(help="Measure only what has this text in its name, such as all together.")] = "",
    seconds: Annotated[float, typer.Option(help="Seconds of each measurement.")] = 10,
    impatient: Annotated[bool, typer.Option(help="Clients that are refused send again at once.")] = False,
) -> None:
    """Measure the events service under overload."""
    table = Table(title=f"Overload: {seconds:.0f} s each")
    for heading in ("what", "clients", "accepted/s", "of best", "p50 ms", "p99 ms", "refused/s", "told to wait"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for heading in ("slowest probe", "service", "clients'", "µs a refusal", "calm s", "MB", "other"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory(prefix="holdfast-overload-") as directory:
        url = bundled.database_url(bundled.scratch_directory(), "events")
        environment = {
            **os.environ,
            "HOLDFAST_DATA_DIR": directory,
            "EVENTS_DATABASE_URL": url,
            "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
            "API_REGISTRATION_NOTIFY": "false",
            **dict.fromkeys(
                ("API_REGISTRATION_RATE_LIMIT", "API_QUEUE_JOIN_RATE_LIMIT", "MCP_RATE_LIMIT"), "1000000000"
            ),
        }
        subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
        with server([holdfast(), "events", "serve", "--port", "0"], environment) as port:
            process = next(process for process in psutil.process_iter() if is_listening(process, port))
            kinds, probes = _of_events(port, url)
            groups = {kind.name: [kind] for kind in kinds} | {"all together": kinds}
            for name, group in groups.items():
                if only in name:
                    _measure(table, port, process, name, group, probes, seconds, not impatient)
    say(table)


def _measure(
    table: Table,
    port: int,
    process: psutil.Process,
    name: str,
    kinds: Sequence[Kind],
    probes: Sequence[Probe],
    seconds: float,
    patient: bool,
) -> None:
    def run(clients: int) -> Seen:
        seen = Crowd(port, process, patient=patient).run(kinds, clients, probes, seconds=seconds)
        say(f"  {name}: {clients:,} clients, {seen.accepted:,.0f}/s", style="dim")
        return seen

    best = max((run(clients) for clients in SATURATING), key=lambda seen: seen.accepted)
    for times in (1, *TIMES):
        seen = run(min(MAX_CLIENTS, best.clients * times)) if times > 1 else best
        slowest = max(seen.probes, key=lambda name: percentile(seen.probes[name], 0.99), default="")
        table.add_row(
            f"{name}, {times} times" if times > 1 else name,
            f"{seen.clients:,}",
            f"{seen.accepted:,.0f}",
            f"{seen.accepted / best.accepted:.2f}",
            f"{percentile(seen.latencies, 0.5) * 1000:,.0f}",
            f"{percentile(seen.latencies, 0.99) * 1000:,.0f}",
            f"{seen.refused:,.0f}",
            f"{min(seen.pauses)} to {max(seen.pauses)} s" if seen.pauses else "",
            f"{slowest} {percentile(seen.probes[slowest], 0.99) * 1000:,.0f}" if slowest else "",
            f"{seen.service:.2f}",
            f"{seen.generator:.2f}",
            _refusal_micros(seen, best),
            f"{seen.calm:.1f}",
            f"{seen.megabytes:.0f}",
            ", ".join(f"{status or 'closed'}: {count}" for status, count in seen.other.items()),
        )


def _refusal_micros(seen: Seen, best: Seen) -> str:
    """What a refusal costs, if what is accepted costs as much as without overload. Meaningful if most is refused."""
    if seen.refused < seen.accepted:
        return ""
    return f"{(seen.service - seen.accepted * best.service / best.accepted) / seen.refused * 1e6:.0f}"


def _of_events(port: int, url: str) -> tuple[list[Kind], list[Probe]]:
    base = f"http://127.0.0.1:{port}"
    organizer = {"name": "Benchmark", "email": "bench@example.com", "slug": "bench"}
    answer = httpx2.post(f"{base}/api/organizers/register", json={"organizer": organizer}).json()
    key = answer["data"]["api_key"]["key"]
    with httpx2.Client(base_url=base, headers={"X-API-Key": key}, timeout=60) as client:
        event: dict[str, Any] = {"title": "Sale", "body": "An evening.", "datetime": "2099-01-01T00:00:00Z", "price": 0}
        event |= {"pricing_mode": "free", "capacity": 100_000_000}
        crowded, known, quiet = (
            client.post("/api/events", json={"event": event}).json()["data"]["id"] for _ in range(3)
        )
        queue = {
            "title": "Sale",
            "release_rate": 60,
            "token_ttl_minutes": 10,
            "target_url": "https://shop.example/sale",
        }
        line = client.post("/api/queues", json={"queue_event": queue}).json()["data"]["id"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_PEOPLE, {"count": PEOPLE, "event": quiet})
        ids = [id for (id,) in connection.execute("select public_id from users where role = 'user' order by id")]
        session = new_secret()
        connection.execute("update users set proved_at = now() where slug = 'bench'")
        connection.execute(
            "insert into sessions (hash, account_id, way, browser)"
            " select %s, id, 'link', 'a benchmark' from users where slug = 'bench'",
            [digest(session)],
        )
    numbers = itertools.count()

    def registration(event: int, **person: str) -> bytes:
        body = msgspec.json.encode({"registration": {"event_id": event, **person}})
        return load.request("POST", "/api/registrations", key, body)

    def join() -> bytes:
        body = msgspec.json.encode({"visitor_id": f"visitor{next(numbers)}"})
        return load.request("POST", f"/api/queues/{line}/join", key, body)

    def repeated(*requests: bytes) -> Iterator[bytes]:
        return itertools.cycle(requests)

    polls = [load.request("GET", f"/api/registrations/{quiet}/{id}", key) for id in ids[:1000]]
    page = f"/organizers/bench/events/{quiet}"
    kinds = [
        Kind(
            "registrations by e-mail",
            (registration(crowded, email=f"n{next(numbers)}@example.com") for _ in itertools.count()),
            202,
        ),
        Kind(
            "registrations by id",
            (registration(known, user_id=ids[next(numbers) % PEOPLE]) for _ in itertools.count()),
            202,
        ),
        Kind("polls", repeated(*polls), 200),
        Kind("joins", (join() for _ in itertools.count()), 202),
        Kind("reads of an event", repeated(load.request("GET", f"/api/events/{quiet}", key)), 200),
        Kind("lists of registrations", repeated(load.request("GET", "/api/registrations", key)), 200),
        Kind("pages of an event", repeated(load.request("GET", page)), 200),
    ]
    cookie = f"session-{port}={session}"
    probes = [
        Probe("health", load.request("GET", "/healthz"), 200),
        Probe("ready", load.request("GET", "/readyz"), 200),
        Probe("metrics", load.request("GET", "/metrics"), 200),
        Probe("console", load.request("GET", f"/console/events/{quiet}", Cookie=cookie), 200),
        Probe("check-in", load.request("GET", f"/console/events/{quiet}/check-in/news", Cookie=cookie), 200),
    ]
    return kinds, probes


_PEOPLE = """
    with people as (
        insert into users (public_id, email)
        select translate(lpad(to_hex(n), 8, '0'), '0189', 'ghij'), 'person' || n || '@example.com'
          from generate_series(1, %(count)s) as n
        returning id)
    insert into registrations (event_id, organizer_id, user_id, arrival, status, amount_paid, received_at,
                               settled_at)
    select %(event)s, organizer_id, people.id, nextval('registration_arrivals'), 'registered', 0, now(), now()
      from people join events on events.id = %(event)s
"""


if __name__ == "__main__":
    typer.run(main)
