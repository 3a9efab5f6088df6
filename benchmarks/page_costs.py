"""What pages and lists that no cache keeps cost: microseconds of the service's processor time for each request.

The kinds are measured by turns, so that all of them see the same machine. PostgreSQL is not counted.

python -m benchmarks.page_costs [--help]
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Annotated, Any, LiteralString, NamedTuple

import httpx2
import psutil
import psycopg
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.stage import holdfast, say, server
from benchmarks.streams import is_listening
from holdfast.accounts.sessions import digest
from holdfast.kit.postgres import bundled
from holdfast.kit.security.cookie_secrets import new_cookie_secret

EVENTS = 100
"""The events whose pages are asked for by turns; a list shows the first of them."""

PEOPLE = 50
"""The registrations of the first event."""

VISITORS = 100

LANGUAGES = ("?lang=en", "?lang=de", "", "?")
"""Queries with which the page of an event is another one for the cache. `?` stands for a German browser."""

BODY = "An evening of **drawing** from life, for beginners and for those who draw every day. More at https://a.test/x. "

_PEOPLE: LiteralString = """
    with people as (
        insert into users (public_id, email, name)
        select translate(lpad(to_hex(n), 8, '0'), '0189', 'ghij'), 'person' || n || '@example.com', 'Person ' || n
          from generate_series(1, %(count)s) as n
        returning id)
    insert into registrations (event_id, organizer_id, user_id, arrival, status, amount_paid, received_at,
                               settled_at)
    select %(event)s, organizer_id, people.id, nextval('registration_arrivals'), 'registered', 0,
           now() - people.id * interval '7 minutes', now()
      from people join events on events.id = %(event)s
"""


class Kind(NamedTuple):
    """A kind of requests.

    requests    the requests of one round, by its number and how many it has
    goal        the most microseconds for one of them
    """

    what: str
    requests: Callable[[int, int], Iterator[bytes]]
    goal: int


def main(
    requests: Annotated[int, typer.Option(help="Requests of each round.")] = 300,
    rounds: Annotated[int, typer.Option(help="Portions of each kind; the median is reported.")] = 5,
    only: Annotated[str, typer.Option(help="Measure only kinds with this text in their names.")] = "",
) -> None:
    """Measure what pages and lists cost that no cache keeps."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "WAITING_ROOM_JOIN_RATE_LIMIT": "1000000000",
        "MCP_RATE_LIMIT": "1000000000",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    with server([holdfast(), "events", "serve", "--port", "0", "--no-background"], environment) as port:
        process = next(process for process in psutil.process_iter() if is_listening(process, port))
        kinds = [kind for kind in _kinds(port, url) if only in kind.what]
        costs = measure(kinds, port, process, requests, rounds)
    table = Table(title=f"What no cache keeps: {rounds} rounds of {requests:,}, median")
    for heading in ("what", "µs of the service each", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for kind in kinds:
        table.add_row(kind.what, f"{median(costs[kind.what]):,.0f}", f"≤ {kind.goal:,}")
    say(table)


def measure(
    kinds: Sequence[Kind], port: int, process: psutil.Process, requests: int, rounds: int
) -> dict[str, list[float]]:
    """Microseconds of the process for each request, by kind, of each round but the first."""
    costs: dict[str, list[float]] = {kind.what: [] for kind in kinds}
    for number in range(rounds + 1):
        for kind in kinds:
            before = _processor_seconds(process)
            result = load.run(port, kind.requests(number, requests), 8)
            spent = _processor_seconds(process) - before
            if set(result.statuses) != {200}:
                raise SystemExit(f"Not every answer to {kind.what} was 200: {result.statuses}")
            if number:  # The first round compiles templates and fills what is kept.
                costs[kind.what].append(spent / requests * 1e6)
    return costs


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _register(base: str, slug: str) -> str:
    """Register an organizer; returns its key."""
    organizer = {"name": "Benchmark", "email": f"{slug}@example.com", "slug": slug}
    answer = httpx2.post(f"{base}/api/organizers/register", json={"organizer": organizer})
    return answer.json()["data"]["api_key"]["key"]


def _kinds(port: int, url: str) -> list[Kind]:
    base = f"http://127.0.0.1:{port}"
    key, other_key = (_register(base, slug) for slug in ("bench", "other"))
    queue: dict[str, Any] = {"title": "Sale", "release_rate": 1, "token_ttl_minutes": 10}
    queue["target_url"] = "https://shop.example/sale"
    event: dict[str, Any] = {"title": "Life drawing", "body": "\n\n".join([5 * BODY] * 18), "price": 0}
    event |= {"pricing_mode": "free", "capacity": 1_000, "datetime": "2099-01-01T00:00:00Z"}
    event |= {"location_name": "The hall", "address": "1 Main Street\n12345 Town"}
    with httpx2.Client(base_url=base, headers={"X-API-Key": key}, timeout=60) as client:
        ids = [client.post("/api/events", json={"event": event}).json()["data"]["id"] for _ in range(EVENTS)]
        brief = {**event, "body": "An evening."}
        for _ in range(20):
            client.post("/api/events", json={"event": brief}, headers={"X-API-Key": other_key}).raise_for_status()
        room = client.post("/api/queues", json={"queue_event": queue}).json()["data"]["id"]
    session = new_cookie_secret()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update users set proved_at = now() where slug = 'bench'")
        connection.execute(_PEOPLE, {"count": PEOPLE, "event": ids[0]})
        connection.execute(
            "insert into sessions (hash, account_id, way, browser)"
            " select %s, id, 'link', 'a benchmark' from users where slug = 'bench'",
            [digest(session)],
        )
        connection.execute("analyze")

    def event_page(number: int, count: int) -> Iterator[bytes]:
        # A change of the events makes every page of them a new one.
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("update events set title = 'Life drawing ' || %s", [str(number)])
        for position in range(count):
            query = LANGUAGES[position // EVENTS % len(LANGUAGES)]
            path = f"/organizers/bench/events/{ids[position % EVENTS]}{query.rstrip('?')}"
            yield load.request("GET", path, Accept_Language="de" if query == "?" else "en")

    visitors = [new_cookie_secret() for _ in range(VISITORS)]

    def waiting_room(number: int, count: int) -> Iterator[bytes]:
        for position in range(count):
            cookie = f"waiting_room_{room}={visitors[position % VISITORS]}"
            yield load.request("GET", f"/queues/{room}", Cookie=cookie)

    def of_console(path: str) -> Callable[[int, int], Iterator[bytes]]:
        request = load.request("GET", path, Cookie=f"session-{port}={session}")
        return lambda number, count: (request for _ in range(count))

    def of_rest(path: str, key: str) -> Callable[[int, int], Iterator[bytes]]:
        request = load.request("GET", path, key)
        return lambda number, count: (request for _ in range(count))

    return [
        Kind("page of an event", event_page, 800),
        Kind("page of a waiting room", waiting_room, 300),
        Kind("console: registrations, 40 rows", of_console(f"/console/events/{ids[0]}/registrations"), 4_000),
        Kind("console: an event", of_console(f"/console/events/{ids[1]}"), 4_000),
        Kind("console: events, 15 rows", of_console("/console"), 4_000),
        Kind("REST: list of 20 events", of_rest("/api/events?limit=20", other_key), 250),
        Kind("REST: list of 20 registrations", of_rest("/api/registrations?limit=20", key), 250),
    ]


if __name__ == "__main__":
    typer.run(main)
