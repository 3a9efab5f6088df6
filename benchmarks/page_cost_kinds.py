"""The kinds of requests that `benchmarks.page_costs` measures, and what must be stored before they are sent."""

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, LiteralString, NamedTuple

import httpx2
import psycopg

from benchmarks import load
from benchmarks.crowded_shop import Crowded
from benchmarks.stock import call
from holdfast.accounts.sessions import digest
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


def _register(base: str, slug: str) -> str:
    """Register an organizer; returns its key."""
    organizer = {"name": "Benchmark", "email": f"{slug}@example.com", "slug": slug}
    answer = httpx2.post(f"{base}/api/organizers/register", json={"organizer": organizer})
    return answer.json()["data"]["api_key"]["key"]


def of_events(port: int, url: str) -> list[Kind]:
    """Pages and lists of the events service, whose empty database is at a URL."""
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
        return _repeated(load.request("GET", path, Cookie=f"session-{port}={session}"))

    def of_rest(path: str, key: str) -> Callable[[int, int], Iterator[bytes]]:
        return _repeated(load.request("GET", path, key))

    return [
        Kind("page of an event", event_page, 800),
        Kind("page of a waiting room", waiting_room, 300),
        Kind("console: registrations, 40 rows", of_console(f"/console/events/{ids[0]}/registrations"), 4_000),
        Kind("console: an event", of_console(f"/console/events/{ids[1]}"), 4_000),
        Kind("console: events, 15 rows", of_console("/console"), 4_000),
        Kind("REST: list of 20 events", of_rest("/api/events?limit=20", other_key), 250),
        Kind("REST: list of 20 registrations", of_rest("/api/registrations?limit=20", key), 250),
    ]


def of_inventory(port: int, shop: Crowded) -> list[Kind]:
    """Lists and pages of the inventory service with a shop."""

    def of_tool(name: str, **arguments: Any) -> Callable[[int, int], Iterator[bytes]]:
        return _repeated(call(shop.key, name, arguments))

    def of_console(path: str) -> Callable[[int, int], Iterator[bytes]]:
        return _repeated(load.request("GET", path, Cookie=f"session-{port}={shop.session}"))

    return [
        Kind("tool: 20 pools", of_tool("list_pools"), 350),
        Kind("tool: 20 pools that are low", of_tool("list_low_stock"), 350),
        Kind("tool: 20 holds", of_tool("list_holds"), 350),
        Kind("tool: search of variants, 20 found", of_tool("search_variants", query="Shirt 7", limit=20), 350),
        Kind("console: pools", of_console("/console"), 4_000),
        Kind("console: low stock", of_console("/console/low-stock"), 4_000),
        Kind("console: holds", of_console("/console/holds"), 4_000),
    ]


def _repeated(request: bytes) -> Callable[[int, int], Iterator[bytes]]:
    return lambda number, count: repeat(request, count)
