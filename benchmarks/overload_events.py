"""The events service for a crowd: what is asked of it, and what must answer meanwhile."""

import contextlib
import itertools
import os
import re
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, LiteralString
from urllib.parse import urlencode

import httpx2
import msgspec
import psutil
import psycopg

from benchmarks import load
from benchmarks.crowd import CrowdedService, Kind
from benchmarks.probes import Probe, Promise
from benchmarks.stage import holdfast, server
from benchmarks.stock import call
from benchmarks.streams import is_listening
from holdfast.accounts.sessions import digest
from holdfast.accounts.signin import operations
from holdfast.events.payments import partner_webhooks
from holdfast.kit.postgres import bundled
from holdfast.kit.security.cookie_secrets import new_cookie_secret

PEOPLE = 20_000
"""People who have a registration for one event before the crowd comes, and a place in one queue."""

KNOWN_EVENTS = 30
"""Events for which people register who have an account. Each person registers once for each of them."""

ACCOUNTS = 5_000
"""Organizers who sign in with a password. Each tries it a few times an hour, as the limits allow."""

PASSWORD = "correct horse battery staple"

WEBHOOK_SECRET = "whsec_of_the_benchmarks"


@contextlib.contextmanager
def events(directory: str, url: str = "", *options: str) -> Generator[CrowdedService]:
    """Start the service with an empty database, which is a new one without `url`, and fill it."""
    url = url or bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "HOLDFAST_DATA_DIR": directory,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        # Its messages are taken, and nothing is asked of the payment processor, since there is no key for it.
        "STRIPE_WEBHOOK_SECRET": WEBHOOK_SECRET,
        "API_REGISTRATION_NOTIFY": "false",
        **dict.fromkeys(
            ("API_REGISTRATION_RATE_LIMIT", "API_QUEUE_JOIN_RATE_LIMIT", "MCP_RATE_LIMIT", "SIGN_IN_RATE_LIMIT"),
            "1000000000",
        ),
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    with server([holdfast(), "events", "serve", "--port", "0", *options], environment) as port:
        process = next(process for process in psutil.process_iter() if is_listening(process, port))
        organizer = _Organizer(port, url)
        yield CrowdedService(
            "events",
            port,
            process,
            _kinds(organizer),
            _probes(organizer),
            lambda: load.request("GET", f"/events/{organizer.quiet}/stream"),
        )


class _Organizer:
    """An organizer with a key and a session.

    crowded    the event for which new people register
    known      the events for which people register who have an account
    quiet      an event whose registrations do not change
    ids        the public ids of its people
    joined     a queue that the crowd joins
    waiting    a queue in which people wait
    """

    def __init__(self, port: int, url: str) -> None:
        self.port = port
        base = f"http://127.0.0.1:{port}"
        organizer = {"name": "Benchmark", "email": "bench@example.com", "slug": "bench"}
        answer = httpx2.post(f"{base}/api/organizers/register", json={"organizer": organizer}).json()
        self.key: str = answer["data"]["api_key"]["key"]
        event: dict[str, Any] = {"title": "Sale", "body": "An evening.", "datetime": "2099-01-01T00:00:00Z", "price": 0}
        event |= {"pricing_mode": "free", "capacity": 100_000_000}
        queue: dict[str, Any] = {"title": "Sale", "release_rate": 60, "token_ttl_minutes": 10}
        queue |= {"target_url": "https://shop.example/sale"}
        with httpx2.Client(base_url=base, headers={"X-API-Key": self.key}, timeout=60) as client:
            self.crowded, self.quiet, *self.known = (
                client.post("/api/events", json={"event": event}).json()["data"]["id"] for _ in range(2 + KNOWN_EVENTS)
            )
            self.joined, self.waiting = (
                client.post("/api/queues", json={"queue_event": queue}).json()["data"]["id"] for _ in range(2)
            )
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_PEOPLE, {"count": PEOPLE, "event": self.quiet})
            ids = connection.execute("select public_id from users where role = 'user' order by id")
            self.ids: list[str] = [id for (id,) in ids]
            connection.execute(_VISITORS, {"count": PEOPLE, "queue": self.waiting})
            connection.execute("update queues set tickets = %s where id = %s", [PEOPLE, self.waiting])
            connection.execute(_ACCOUNTS, {"count": ACCOUNTS, "hash": operations.HASHER.hash(PASSWORD)})
            session = new_cookie_secret()
            connection.execute("update users set proved_at = now() where slug = 'bench'")
            connection.execute(
                "insert into sessions (hash, account_id, way, browser)"
                " select %s, id, 'link', 'a benchmark' from users where slug = 'bench'",
                [digest(session)],
            )
            connection.execute("analyze users, registrations, queue_visitors, queues")
        self.cookie = f"session-{port}={session}"
        form = httpx2.get(f"{base}/sign-in").text
        match = re.search(r'name="token" value="([^"]+)"', form)
        assert match
        self.form_token = match[1]


def _kinds(organizer: _Organizer) -> list[Kind]:
    def registration(event: int, **person: str) -> bytes:
        body = msgspec.json.encode({"registration": {"event_id": event, **person}})
        return load.request("POST", "/api/registrations", organizer.key, body)

    def with_email(number: int) -> bytes:
        return registration(organizer.crowded, email=f"n{number}@example.com")

    def with_id(number: int) -> bytes:
        return registration(organizer.known[number // PEOPLE % KNOWN_EVENTS], user_id=organizer.ids[number % PEOPLE])

    def join(number: int) -> bytes:
        body = msgspec.json.encode({"visitor_id": f"visitor{number}"})
        return load.request("POST", f"/api/queues/{organizer.joined}/join", organizer.key, body)

    def place(number: int) -> bytes:
        return load.request(
            "GET", f"/api/queues/{organizer.waiting}/status/visitor{number * 7_919 % PEOPLE}", organizer.key
        )

    def status(number: int) -> bytes:
        return load.request(
            "GET", f"/api/registrations/{organizer.quiet}/{organizer.ids[number * 7_919 % PEOPLE]}", organizer.key
        )

    def sign_in(email: str) -> bytes:
        form = {"token": organizer.form_token, "email": email, "password": PASSWORD}
        kind = "application/x-www-form-urlencoded"
        return load.request("POST", "/sign-in", body=urlencode(form).encode(), Content_Type=kind)

    def poll(body: bytes) -> bytes:
        url: str = msgspec.json.decode(body)["next"]["url"]
        return load.request("GET", url[url.index("/api/") :], organizer.key)

    emails, ids = numbered(with_email), numbered(with_id)
    return [
        Kind("registrations by e-mail", emails, 202, promise=Promise(emails, poll)),
        Kind("registrations by id", ids, 202, promise=Promise(ids, poll)),
        Kind("polls of registrations", numbered(status), 200),
        Kind("joins of a queue", numbered(join), 202),
        Kind("places in a queue", numbered(place), 200),
        Kind("reads of an event", repeated(load.request("GET", f"/api/events/{organizer.quiet}", organizer.key)), 200),
        Kind("lists of registrations", repeated(load.request("GET", "/api/registrations", organizer.key)), 200),
        Kind("pages of an event", repeated(load.request("GET", f"/organizers/bench/events/{organizer.quiet}")), 200),
        *(
            Kind(
                f"events' /mcp, {era}",
                repeated(call(organizer.key, "get_event", {"event_id": organizer.quiet}, era)),
                200,
            )
            for era in ("2025-11-25", "2026-07-28")
        ),
        Kind("sign-ins", numbered(lambda number: sign_in(f"account{number % ACCOUNTS}@example.com")), 303, warm=6),
        # The limit is meant, and its answer is all that this crowd gets.
        Kind("sign-ins beyond the limit of an account", repeated(sign_in("bench@example.com")), 429),
    ]


def _probes(organizer: _Organizer) -> list[Probe]:
    def message(number: int) -> bytes:
        object = {"id": f"cs_{number}", "object": "checkout.session"}
        body = {"id": f"evt_{number}", "type": "checkout.session.completed", "data": {"object": object}}
        text, now = msgspec.json.encode(body), int(time.time())
        signed = f"t={now},v1={partner_webhooks.sign(WEBHOOK_SECRET, now, text)}"
        return load.request("POST", "/stripe/webhook", body=text, Stripe_Signature=signed)

    page = f"/console/events/{organizer.quiet}"
    return [
        *signs_of_life(),
        Probe("console", repeated(load.request("GET", page, Cookie=organizer.cookie)), 200),
        Probe("check-in", repeated(load.request("GET", f"{page}/check-in/news", Cookie=organizer.cookie)), 200),
        Probe("payment webhook", numbered(message), 204),
    ]


def signs_of_life() -> list[Probe]:
    """The probes of both services: health, readiness, metrics."""
    return [
        Probe(name, repeated(load.request("GET", path)), 200)
        for name, path in (("health", "/healthz"), ("ready", "/readyz"), ("metrics", "/metrics"))
    ]


def numbered(request: Callable[[int], bytes]) -> Iterator[bytes]:
    """Requests without an end, each with another number."""
    return map(request, itertools.count())


def repeated(request: bytes) -> Iterator[bytes]:
    """One request without an end."""
    return itertools.repeat(request)


_PEOPLE: LiteralString = """
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

_VISITORS: LiteralString = """
    insert into queue_visitors (queue_id, visitor_id, ticket)
    select %(queue)s, 'visitor' || n - 1, n from generate_series(1, %(count)s) as n
"""

_ACCOUNTS: LiteralString = """
    insert into users (public_id, email, name, role, slug, proved_at, password_hash)
    select 'z' || translate(lpad(to_hex(n), 7, '0'), '0189', 'ghij'), 'account' || n || '@example.com',
           'Organizer ' || n, 'organizer', 'organizer-' || n, now(), %(hash)s
      from generate_series(0, %(count)s - 1) as n
"""
