"""What a killed process leaves: the time from SIGKILL until everything that it had taken is done, under load.

python -m benchmarks.kills [--help]

Both services run in one process each, which is started again at once. Orders come to the inventory service, and people
register for seats that they have to pay for. The platform and the processor are doubles in processes of their own.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from html import unescape
from threading import Event, Thread
from typing import Annotated, Any, LiteralString, NamedTuple

import httpx2
import psutil
import psycopg
import typer
from rich.table import Table

from benchmarks import shops
from benchmarks.platform import Sale
from benchmarks.shops import Platform, free_ports
from benchmarks.stage import holdfast, say, server
from benchmarks.streams import is_listening
from holdfast.kit.postgres import bundled
from holdfast_demo.stripe.processor import new_secrets

DOMAIN = "killed.myshopify.com"
KEYS = new_secrets()
MAX_SECONDS = 240
"""How long to wait after a kill until everything is done."""

CALL_SECONDS = 0.3
"""How long the processor takes to open a page to pay, and the platform to set levels."""

STARTED = "both services answer"

LOAD_SECONDS = 5
"""How long the load goes on before each kill."""


class Backlog(NamedTuple):
    """One kind of work. `rows`: those that a process works on. `done`: how many of given rows are done."""

    name: str
    service: str
    rows: LiteralString
    done: LiteralString


BACKLOGS = (
    Backlog(
        "webhooks",
        "inventory",
        "select id from webhooks where handled_at is null and attempts > 0 and due_at > now()",
        "select count(*) from webhooks where id = any(%s) and handled_at is not null",
    ),
    Backlog(
        "levels",
        "inventory",
        "select id from pushes",
        "select cardinality(%s::bigint[]) - (select count(*) from pushes where id = any(%s))",
    ),
    Backlog(
        "payments",
        "events",
        "select id from payments where state = 'opening' and attempts > 0 and due_at > now()",
        "select count(*) from payments where id = any(%s) and state <> 'opening'",
    ),
)


def main(
    kills: Annotated[int, typer.Option(help="How often the processes are killed.")] = 10,
    orders: Annotated[float, typer.Option(help="Orders a second.")] = 100,
    payments: Annotated[float, typer.Option(help="Registrations a second that are to be paid for.")] = 20,
) -> None:
    """Kill both services under load, and measure how long what they had taken waits."""
    directory = bundled.scratch_directory()
    ports, (events_port, processor_port) = free_ports(), free_ports()
    environment = {
        **os.environ,
        **shops.settings(ports),
        "INVENTORY_DATABASE_URL": bundled.database_url(directory, "inventory"),
        "EVENTS_DATABASE_URL": bundled.database_url(directory, "events"),
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "HOLDFAST_DATA_DIR": str(directory),
        "API_REGISTRATION_NOTIFY": "false",
        "FORM_EVENT_RATE_LIMIT": "1000000000",
        "FORM_RATE_LIMIT": "1000000000",
        "STRIPE_SECRET_KEY": KEYS.api,
        "STRIPE_API_BASE": f"http://127.0.0.1:{processor_port}",
        "STRIPE_WEBHOOK_SECRET": KEYS.webhooks,
    }
    for name in ("inventory", "events"):
        subprocess.run([holdfast(), name, "migrate"], env=environment, check=True, capture_output=True)
    serving = {"inventory": ports.service, "events": events_port}
    with contextlib.ExitStack() as doubles:
        platform = doubles.enter_context(shops.platform(ports, environment))
        processor = doubles.enter_context(_processor(processor_port, events_port, environment))
        lives = contextlib.ExitStack()
        try:
            _start(lives, serving, environment)
            service = shops.Service(ports.service, environment["INVENTORY_DATABASE_URL"])
            shop = shops.opened(platform, service, DOMAIN, 10, 1_000.0)
            platform.ask("plan", kind="slow", operation="(Set|Adjust)Levels", times=1_000_000, seconds=CALL_SECONDS)
            seats = _seats(events_port, processor)
            waits: dict[str, list[float]] = {STARTED: [], **{backlog.name: [] for backlog in BACKLOGS}}
            with _selling(platform, shop, orders), _registering(events_port, seats, payments):
                for number in range(kills):
                    time.sleep(LOAD_SECONDS)
                    killed_at, rows = _kill(serving, environment)
                    with contextlib.suppress(Exception):
                        lives.close()
                    _start(lives, serving, environment)
                    waits[STARTED].append(time.perf_counter() - killed_at)
                    for name, seconds in _waited(killed_at, rows, environment).items():
                        waits[name].append(seconds)
                    say(f"  kill {number + 1}: {_line(waits, rows)}", style="dim")
        finally:
            lives.close()
    say(_table(waits, kills))


@contextlib.contextmanager
def _processor(port: int, events_port: int, environment: dict[str, str]) -> Generator[httpx2.Client]:
    hook = f"http://127.0.0.1:{events_port}/stripe/webhook"
    command = [sys.executable, "-m", "holdfast_demo.stripe", "--port", str(port), "--for-tests"]
    secrets = ["--key", KEYS.api, "--webhook-secret", KEYS.webhooks]
    with server([*command, *secrets, "--webhook-url", hook], environment) as _:
        client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        plan = {"kind": "slow", "path": "/checkout/sessions", "times": 1_000_000, "seconds": CALL_SECONDS}
        assert client.post("/_test/plan", json=plan).is_success
        yield client


def _start(lives: contextlib.ExitStack, serving: dict[str, int], environment: dict[str, str]) -> None:
    for name, port in serving.items():
        lives.enter_context(server([holdfast(), name, "serve", "--port", str(port)], environment))


def _kill(serving: dict[str, int], environment: dict[str, str]) -> tuple[float, dict[str, list[int]]]:
    """Kill both services. Returns when, and the rows that they had taken."""
    processes = [
        next(process for process in psutil.process_iter(["cmdline"]) if is_listening(process, port))
        for port in serving.values()
    ]
    for process in processes:
        process.kill()
    killed_at = time.perf_counter()
    rows: dict[str, list[int]] = {}
    for backlog in BACKLOGS:
        with psycopg.connect(environment[f"{backlog.service.upper()}_DATABASE_URL"]) as connection:
            rows[backlog.name] = [id for (id,) in connection.execute(backlog.rows).fetchall()]
    return killed_at, rows


def _waited(killed_at: float, rows: dict[str, list[int]], environment: dict[str, str]) -> dict[str, float]:
    """Seconds from the kill until all rows of each kind are done."""
    waits: dict[str, float] = {}
    for backlog in sorted(BACKLOGS, key=lambda backlog: backlog.name != "payments"):
        ids = rows[backlog.name]
        if not ids:
            continue
        with psycopg.connect(environment[f"{backlog.service.upper()}_DATABASE_URL"], autocommit=True) as connection:
            shops.until(
                lambda connection=connection, backlog=backlog, ids=ids: _are_done(connection, backlog, ids),
                seconds=MAX_SECONDS,
            )
        waits[backlog.name] = time.perf_counter() - killed_at
    return waits


def _are_done(connection: psycopg.Connection[Any], backlog: Backlog, ids: list[int]) -> bool:
    row = connection.execute(backlog.done, [ids] * backlog.done.count("%s")).fetchone()
    return row is not None and row[0] == len(ids)


def _seats(port: int, processor: httpx2.Client) -> str:
    """The path of the form for an event whose seats cost something."""
    http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
    organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}
    key = http.post("/api/organizers/register", json={"organizer": organizer}).json()["data"]["api_key"]["key"]
    http.headers["X-API-Key"] = key
    account = http.post("/api/stripe/onboarding_link").json()["data"]["stripe_account_id"]
    assert processor.post("/_test/finish", json={"account": account}).is_success
    http.post("/api/stripe/onboarding_link")
    fields = {
        "title": "Life drawing",
        "body": "Bring a pencil.",
        "datetime": "2099-01-01T18:00:00Z",
        "capacity": 100_000,
        "pricing_mode": "fixed",
        "price": 1200,
        "currency": "EUR",
    }
    event = http.post("/api/events", json={"event": fields})
    assert event.status_code == 201, event.text
    return f"/events/{event.json()['data']['id']}/embed"


@contextlib.contextmanager
def _steadily(work: Callable[[Event], None]) -> Generator[None]:
    """Do something in a thread until the block ends."""
    ended = Event()
    thread = Thread(target=work, args=[ended], daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=60)


def _selling(platform: Platform, shop: shops.Open, per_second: float) -> contextlib.AbstractContextManager[None]:
    variants = {shop.domain: [variant for pool in shop.pools for variant in pool.sold]}

    def sell(ended: Event) -> None:
        while not ended.is_set():
            platform.sell(Sale(per_second, 2, variants, []))

    return _steadily(sell)


def _registering(port: int, path: str, per_second: float) -> contextlib.AbstractContextManager[None]:
    def register(ended: Event) -> None:
        numbers: Iterator[int] = iter(range(10**9))
        token = ""
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers={"Accept": "text/html"}, timeout=10) as http:
            while not ended.wait(1 / per_second):
                # The service does not answer while the service starts.
                with contextlib.suppress(httpx2.TransportError):
                    token = token or _token(http.get(path).text)
                    http.post(path, data={"token": token, "email": f"{next(numbers)}@example.com"})

    return _steadily(register)


def _token(page: str) -> str:
    match = re.search(r'<input[^>]* name="token"[^>]* value="([^"]*)"', page)
    return unescape(match[1]) if match else ""


def _line(waits: dict[str, list[float]], rows: dict[str, list[int]]) -> str:
    done = [f"{len(ids)} {name} done after {waits[name][-1]:.1f} s" for name, ids in rows.items() if ids]
    return ", ".join([f"{STARTED} after {waits[STARTED][-1]:.1f} s", *done])


def _table(waits: dict[str, list[float]], kills: int) -> Table:
    table = Table(title=f"SIGKILL under load, {kills} times: from the kill until what was taken before is done")
    for heading in ("work", "kills", "median", "longest"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for name, seconds in waits.items():
        if seconds:
            middle = sorted(seconds)[len(seconds) // 2]
            table.add_row(name, str(len(seconds)), f"{middle:.1f} s", f"{max(seconds):.1f} s")
    return table


if __name__ == "__main__":
    typer.run(main)
