"""What clients ask of the services, for measurements and checks."""

import contextlib
import itertools
import os
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import httpx2
import msgspec
import psycopg

from benchmarks import load, stock
from benchmarks.scale.driving import Bench, Traffic
from benchmarks.stage import holdfast, server
from holdfast.kit.postgres import bundled
from holdfast.kit.security.cookie_secrets import new_cookie_secret

PEOPLE = 20_000
"""People who are known, with a registration for another event."""

OTHER_EVENTS = 3_000
"""Events of which a process cannot keep all pages."""

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
    kinds: dict[str, Traffic]


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
            kinds = _of_events(port, url)
            yield Events(Bench(port, url), environment, {kind.name: kind for kind in kinds})


def _of_events(port: int, url: str) -> list[Traffic]:
    base = f"http://127.0.0.1:{port}"
    organizer = {"name": "Benchmark", "email": "bench@example.com", "slug": "bench"}
    answer = httpx2.post(f"{base}/api/organizers/register", json={"organizer": organizer}).json()
    key = answer["data"]["api_key"]["key"]
    event: dict[str, Any] = {"title": "Sale", "body": "An evening.", "datetime": "2099-01-01T00:00:00Z", "price": 0}
    event |= {"pricing_mode": "free", "capacity": 100_000_000}
    queue = {"title": "Sale", "release_rate": 60, "token_ttl_minutes": 10, "target_url": "https://shop.example/sale"}
    with httpx2.Client(base_url=base, headers={"X-API-Key": key}, timeout=60) as client:
        new, known, quiet = (client.post("/api/events", json={"event": event}).json()["data"]["id"] for _ in range(3))
        line = client.post("/api/queues", json={"queue_event": queue}).json()["data"]["id"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_PEOPLE, {"count": PEOPLE, "event": quiet})
        rows = connection.execute("select public_id from users where role = 'user' order by id")
        people = [public_id for (public_id,) in rows]
        others = [event for (event,) in connection.execute(_OTHER_EVENTS, {"count": OTHER_EVENTS, "event": quiet})]
        connection.execute("vacuum (analyze) events, users, registrations")
    numbers, secrets = itertools.count(), [new_cookie_secret() for _ in range(200)]

    def registration(event: int, **person: str) -> bytes:
        body = msgspec.json.encode({"registration": {"event_id": event, **person}})
        return load.request("POST", "/api/registrations", key, body)

    def join(number: int) -> bytes:
        body = msgspec.json.encode({"visitor_id": f"visitor{number}"})
        return load.request("POST", f"/api/queues/{line}/join", key, body)

    def room(secret: str) -> bytes:
        return load.request("GET", f"/queues/{line}", Cookie=f"waiting_room_{line}={secret}")

    polls = [load.request("GET", f"/api/registrations/{quiet}/{person}", key) for person in people[:1000]]
    read = load.request("GET", f"/api/events/{quiet}", key)
    page = load.request("GET", f"/organizers/bench/events/{quiet}")
    pages = [load.request("GET", f"/organizers/bench/events/{event}") for event in others]
    status = (load.request("GET", f"/api/queues/{line}/status/visitor{number}", key) for number in numbers)
    strangers = (room(new_cookie_secret()) for _ in itertools.count())
    by_email = (registration(new, email=f"n{number}@example.com") for number in itertools.count())
    by_id = (registration(known, user_id=people[number % PEOPLE]) for number in itertools.count())
    return [
        Traffic("registrations by e-mail", by_email, 202),
        Traffic("registrations by id", by_id, 202),
        Traffic("polls", itertools.cycle(polls), 200),
        Traffic("joins", (join(number) for number in itertools.count()), 202),
        Traffic("places in a queue", status, 200),
        Traffic("reads of an event", itertools.repeat(read), 200),
        Traffic("pages of an event", itertools.repeat(page), 200),
        Traffic("pages of events that are seldom looked at", itertools.cycle(pages), 200),
        Traffic("pages of the waiting room that give a place", strangers, 200),
        Traffic("pages of the waiting room", itertools.cycle([room(secret) for secret in secrets]), 200),
    ]


_OTHER_EVENTS = """
    insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
                        price, recurrence_frequency, recurrence_interval, recurs_from)
    select organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
           price, recurrence_frequency, recurrence_interval, recurs_from
      from events cross join generate_series(1, %(count)s)
     where id = %(event)s
 returning id
"""

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


class Inventory(NamedTuple):
    """A process of the inventory service, and what is asked of it."""

    bench: Bench
    kinds: dict[str, Traffic]


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
            Traffic("changes of stock", _changes(key, pools), 200),
            Traffic("availability of a variant", itertools.repeat(one), 200),
            Traffic("availability of a shop of 1,000 variants", itertools.repeat(storefront), 200),
        ]
        yield Inventory(Bench(port, url), {kind.name: kind for kind in kinds})


def _changes(key: str, pools: Iterator[int]) -> Iterator[bytes]:
    while True:
        yield stock.call(key, "adjust_pool_quantity", {"pool_id": next(pools), "delta": 1})
