"""What its public log costs a registration: two events by turns, one with a log and one without, in one service.

Summed is the processor time of the service and of PostgreSQL until all registrations of a round are settled, and what
the log has of them is sealed and signed.

python -m benchmarks.log_share [--help]
"""

import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from typing import Annotated

import httpx2
import msgspec
import psycopg
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.registrations import event_at
from benchmarks.scale.driving import Bench
from benchmarks.stage import holdfast, say, server
from holdfast.kit.postgres import bundled

LEFT = """
    select exists (select from registrations where status = 'pending') or exists (select from log_pending)
           or exists (select from log_heads where signed_size < size)
"""


def main(
    registrations: Annotated[int, typer.Option(help="Registrations of a round.")] = 5_000,
    pairs: Annotated[int, typer.Option(help="Pairs of rounds, one with and one without a log.")] = 9,
    by_id: Annotated[bool, typer.Option(help="Register known people by their ids.")] = False,
) -> None:
    """Compare the processor time of registrations with and without a public log."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "API_REGISTRATION_NOTIFY": "false",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    sums: tuple[list[float], list[float]] = ([], [])
    parts = ([0.0, 0.0], [0.0, 0.0])
    with (
        server([holdfast(), "events", "serve", "--port", "0"], environment) as port,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        bench, key = Bench(port, url), ""
        for pair in range(-1, pairs):  # the first pair warms up
            for has_log in (True, False) if pair % 2 else (False, True):
                key, event = event_at(port, registrations, key)
                if not has_log:
                    _switch_log_off(port, key, event)
                requests = list(_requests(connection, event, key, registrations, f"p{pair}l{has_log}", by_id=by_id))
                _settle(connection)
                before = bench.spent()
                result = load.run(port, iter(requests))
                if set(result.statuses) != {202}:
                    raise SystemExit(f"Not every answer was 202: {result.statuses}")
                _settle(connection)
                spent = bench.spent().since(before)
                if pair >= 0:
                    sums[has_log].append(spent.service + spent.database)
                    parts[has_log][0] += spent.service / pairs
                    parts[has_log][1] += spent.database / pairs
    table = Table(title=f"Processor time of a registration, µs: {pairs} pairs of {registrations:,}")
    for heading in ("public log", "service", "PostgreSQL", "together, median"):
        table.add_column(heading, justify="left" if heading == "public log" else "right")
    for has_log in (False, True):
        values = [*parts[has_log], statistics.median(sums[has_log])]
        table.add_row("with" if has_log else "without", *(f"{value / registrations * 1e6:.0f}" for value in values))
    say(table)
    shares = [with_log / without - 1 for without, with_log in zip(*sums, strict=True)]
    say(f"The log adds {statistics.median(shares):.1%} (median; {min(shares):.1%} to {max(shares):.1%}).")


def _requests(
    connection: psycopg.Connection, event: int, key: str, count: int, name: str, *, by_id: bool
) -> Iterator[bytes]:
    people: list[dict[str, str]] = [{"email": f"{name}n{number}@example.com"} for number in range(count)]
    if by_id:
        connection.execute(
            "insert into users (public_id, email) select 'user_' || substr(md5(email), 1, 20), email"
            " from unnest(%s::text[]) as email on conflict do nothing",
            [[person["email"] for person in people]],
        )
        ids = connection.execute(
            "select public_id from users where email = any(%s)", [[person["email"] for person in people]]
        )
        people = [{"user_id": public_id} for (public_id,) in ids]
    for person in people:
        body = msgspec.json.encode({"registration": {"event_id": event, **person}})
        yield load.request("POST", "/api/registrations", key, body)


def _switch_log_off(port: int, key: str, event: int) -> None:
    httpx2.patch(
        f"http://127.0.0.1:{port}/api/events/{event}",
        json={"event": {"public_log": False}},
        headers={"X-API-Key": key},
    ).raise_for_status()


def _settle(connection: psycopg.Connection) -> None:
    """Wait until nothing is left to do."""
    while (connection.execute(LEFT).fetchone() or [True])[0]:
        time.sleep(0.05)
    time.sleep(0.6)  # what was just sealed is signed and noted in the log of heads


if __name__ == "__main__":
    typer.run(main)
