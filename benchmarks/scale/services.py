"""What clients ask of the services, for measurements and checks."""

import contextlib
import itertools
import os
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from typing import NamedTuple

import psycopg

from benchmarks import load, stock
from benchmarks.crowd import Kind
from benchmarks.overload import kinds_of_events
from benchmarks.scale.driving import Bench
from benchmarks.stage import holdfast, server
from holdfast.events.queues.room import new_secret
from holdfast.kit.postgres import bundled

WITHOUT_LIMIT = dict.fromkeys(
    (
        "API_REGISTRATION_RATE_LIMIT",
        "API_QUEUE_JOIN_RATE_LIMIT",
        "QUEUE_PAGE_JOIN_RATE_LIMIT",
        "FORM_RATE_LIMIT",
        "FORM_EVENT_RATE_LIMIT",
        "MCP_RATE_LIMIT",
    ),
    "1000000000",
)


class Events(NamedTuple):
    """A process of the events service without background work, and what is asked of it."""

    bench: Bench
    environment: dict[str, str]
    kinds: dict[str, Kind]


@contextlib.contextmanager
def events_service(*, notify: bool = False) -> Generator[Events]:
    """A process of the events service on a new database. `notify`: whether registrations cause mails."""
    with tempfile.TemporaryDirectory(prefix="holdfast-scale-") as directory:
        url = bundled.database_url(bundled.scratch_directory(), "events")
        environment = {
            **os.environ,
            **WITHOUT_LIMIT,
            "HOLDFAST_DATA_DIR": directory,
            "EVENTS_DATABASE_URL": url,
            "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
            "API_REGISTRATION_NOTIFY": str(notify).lower(),
        }
        subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
        with server([holdfast(), "events", "serve", "--port", "0", "--no-background"], environment) as port:
            kinds, _ = kinds_of_events(port, url)
            named = {kind.name: kind for kind in [*kinds, *_of_the_queue(url)]}
            yield Events(Bench(port, url), environment, named)


def _of_the_queue(url: str) -> list[Kind]:
    """What visitors of the only waiting room ask."""
    with psycopg.connect(url, autocommit=True) as connection:
        [queue] = connection.execute("select id from queues").fetchone() or [0]
    path = f"/queues/{queue}"

    def cookie(secret: str) -> str:
        return f"waiting_room_{queue}={secret}"

    known = [new_secret() for _ in range(200)]
    numbers = itertools.count()

    def arrivals() -> Iterator[bytes]:
        while True:
            yield load.request("GET", path, Cookie=cookie(new_secret()))

    def known_visitors() -> Iterator[bytes]:
        while True:
            yield load.request("GET", path, Cookie=cookie(known[next(numbers) % len(known)]))

    return [
        Kind("pages of the waiting room that give a place", arrivals(), 200),
        Kind("pages of the waiting room", known_visitors(), 200),
    ]


class Inventory(NamedTuple):
    """A process of the inventory service, and what is asked of it."""

    bench: Bench
    kinds: dict[str, Kind]


@contextlib.contextmanager
def inventory_service() -> Generator[Inventory]:
    """A process of the inventory service on a new database, with one shop of 1,000 pools."""
    directory = bundled.scratch_directory()
    url = bundled.database_url(directory, "inventory")
    environment = {
        **os.environ,
        **WITHOUT_LIMIT,
        "HOLDFAST_DATA_DIR": str(directory),
        "INVENTORY_DATABASE_URL": url,
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
    }
    subprocess.run([holdfast(), "inventory", "migrate"], env=environment, check=True, capture_output=True)
    key = stock.added_shop(environment, stock.SHOP)
    with server([holdfast(), "inventory", "serve", "--port", "0", "--no-background"], environment) as port:
        pools = itertools.cycle(stock.make_pools(port, key, 1_000))
        stock.stock_shelves(port, key, 1_000)
        variant = "gid://shopify/ProductVariant/40000000000"
        storefront = load.request("GET", stock.signed_path(environment), Accept_Encoding="gzip")
        one = stock.call(key, "get_availability", {"variant_gids": [variant]})
        kinds = [
            Kind("changes of stock", _changes(key, pools), 200),
            Kind("availability of a variant", itertools.repeat(one), 200),
            Kind("availability of a shop of 1,000 variants", itertools.repeat(storefront), 200),
        ]
        yield Inventory(Bench(port, url), {kind.name: kind for kind in kinds})


def _changes(key: str, pools: Iterator[int]) -> Iterator[bytes]:
    while True:
        yield stock.call(key, "adjust_pool_quantity", {"pool_id": next(pools), "delta": 1})
