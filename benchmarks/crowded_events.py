"""The events service with as much in it as is wanted, filled by a few statements; its lists and its hot paths."""

from collections.abc import Iterator, Mapping
from typing import LiteralString, NamedTuple

import httpx2
import msgspec
import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks import load
from benchmarks.growing import FAR, Path
from benchmarks.stock import call
from holdfast.accounts.sessions import digest as session_digest
from holdfast.kit.postgres.bundled_server import SUPERUSER
from holdfast.kit.security import api_keys
from holdfast.kit.security.cookie_secrets import new_cookie_secret


class Sizes(NamedTuple):
    """How much of everything there is. All but `organizers` belongs to one organizer.

    prices    changes of prices, spread over dynamic events
    """

    registrations: int
    events: int
    queues: int
    organizers: int
    prices: int


class Crowded(NamedTuple):
    """The clients of the benchmark, and what they ask for.

    event      has half of all registrations: one of each person
    people     how many there are
    session    the cookie of the organizer
    """

    key: str
    small_key: str
    admin_key: str
    event: int
    queue: int
    people: int
    session: str


FILL: LiteralString = """
    insert into users (public_id, email, name, role, slug, proved_at)
    select 'z' || translate(lpad(to_hex(n), 7, '0'), '0189', 'ghij'), 'organizer' || n || '@example.com',
           'Organizer ' || n, 'organizer', 'organizer-' || n, now()
      from generate_series(1, %(organizers)s) as n;

    insert into users (public_id, email)
    select translate(lpad(to_hex(n), 8, '0'), '0189', 'ghij'), 'person' || n || '@example.com'
      from generate_series(1, %(registrations)s / 2) as n;

    -- The first is the big one. Each of the others has one event too, behind those of the first.
    insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, registered_count,
                        waitlisted_count, currency, pricing_mode, price, min_price, max_price, current_price,
                        recurrence_frequency, recurrence_interval, recurs_from)
    select case when n <= %(events)s then 1 else n - %(events)s end, 'Event ' || n, repeat('Bring a pencil. ', 10), day,
           100000000, 100000000, 0, 0, 'EUR', 'dynamic', 2000, 1000, 3000, 2000, 'none', 0, day
      from generate_series(1, %(events)s + %(organizers)s) as n
     cross join (select timestamptz '2099-01-01 18:00Z' as day) as date;

    insert into event_owners (event_id, organizer_id) select id, organizer_id from events;

    insert into price_changes (event_id, reason, original_price, new_price)
    select 1 + n %% %(events)s, case when n < %(events)s then 'init' else 'tick' end::price_change_reason,
           case when n >= %(events)s then 2010 end, 2000
      from generate_series(0, greatest(%(events)s, %(prices)s) - 1) as n;

    -- Every second one is for the first event. The others are for the other events of the same organizer, but one of a
    -- hundred for other organizers, and the last ones for the second. Most have a seat.
    insert into registrations (event_id, organizer_id, user_id, arrival, status, amount_paid, received_at, settled_at,
                               reason)
    select event_id, case when event_id <= %(events)s then 1 else event_id - %(events)s end, people.id, n,
           status::registration_status, 2000, received_at, received_at,
           case when status = 'rejected' then 'event_full' end
      from generate_series(1, %(registrations)s) as n
     cross join lateral (
        select timestamptz '2026-01-01 00:00Z' + n * interval '1 millisecond' as received_at,
               case n %% 20 when 7 then 'waitlisted' when 9 then 'waitlisted' when 13 then 'rejected'
                            else 'registered' end as status,
               case when n %% 2 = 1 then 1
                    when n > 0.98 * %(registrations)s then %(events)s + 2
                    when n %% 100 = 0 then %(events)s + 2 + n / 100 %% (%(organizers)s - 1)
                    else 2 + n / 2 %% (%(events)s - 1) end as event_id) as place
      join users as people on people.id = %(organizers)s + (n + 1) / 2;
    select setval('registration_arrivals', %(registrations)s);

    update events set registered_count = registered, waitlisted_count = waitlisted
      from (select event_id, count(*) filter (where status = 'registered') as registered,
                             count(*) filter (where status = 'waitlisted') as waitlisted
              from registrations group by event_id) as seats
     where event_id = events.id;

    -- What the job writes for an event that is searched.
    insert into searched_events (event_id, received_at, arrival, places)
    select 1, received_at, arrival, registered_count + waitlisted_count
      from registrations join events on id = 1 where event_id = 1 order by received_at desc, arrival desc limit 1;
    insert into searched_registrations (event_id, user_id, words, received_at, arrival)
    select event_id, user_id, searched_words(users.email, coalesce(registrations.name, users.name)), received_at,
           arrival
      from registrations join users on users.id = user_id where event_id = 1;

    insert into payments (event_id, user_id, arrival, amount, fee, currency, state, session_id, intent_id, ends_at,
                          due_at, paid_at)
    select event_id, user_id, arrival, 2000, 100, 'EUR', 'paid', 's' || arrival, 'i' || arrival, received_at, null,
           received_at
      from registrations where arrival %% 20 = 1 order by arrival;

    insert into mails (kind, thread, recipient, arguments, ended_at, outcome)
    select 'seat', 'registration ' || event_id || ' ' || public_id, email,
           jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', public_id), now(), 'sent'
      from registrations join users on users.id = user_id where arrival %% 10 in (1, 2) order by arrival;

    insert into queues (organizer_id, title, active, release_rate, target_url, token_ttl_minutes)
    select 1, 'Queue ' || n, true, 60, 'https://shop.example/sale', 10 from generate_series(1, %(queues)s) as n;
    insert into queue_visitors (queue_id, visitor_id, ticket)
    select 1, 'visitor' || n, n from generate_series(1, %(registrations)s / 2) as n;
    update queues set tickets = %(registrations)s / 2 where id = 1;

    insert into api_keys (user_id, name, start, hash)
    select 1 + n %% %(organizers)s, 'Key ' || n, 'hf_abcde', sha256(n::text::bytea)
      from generate_series(1, %(organizers)s) as n
"""


def fill(url: str, sizes: Sizes) -> Crowded:
    """Fill a migrated, empty database of the bundled server."""
    admin_key, key, small_key, session = api_keys.new_key(), api_keys.new_key(), api_keys.new_key(), new_cookie_secret()
    with psycopg.connect(make_conninfo(url, user=SUPERUSER), autocommit=True) as connection:
        # As a replica does: no trigger counts, mails, or looks up what is known to be right, which takes far longer.
        connection.execute("set session_replication_role = replica")
        psycopg.ClientCursor(connection).execute(FILL, sizes._asdict())
        for who, secret in ((None, admin_key), (1, key), (2, small_key)):
            connection.execute(
                "insert into api_keys (user_id, name, start, hash) values (%s, 'Benchmark', %s, %s)",
                [who, secret[:8], api_keys.digest(secret)],
            )
        connection.execute(
            "insert into sessions (hash, account_id, way, browser) values (%s, 1, 'link', 'a benchmark')",
            [session_digest(session)],
        )
        connection.execute("vacuum (analyze)")
    return Crowded(key, small_key, admin_key, 1, 1, sizes.registrations // 2, session)


def person(number: int) -> str:
    """The public id of a person; the first is 1. Each is registered for the big event."""
    return f"{number:08x}".translate(str.maketrans("0189", "ghij"))


def lists(crowded: Crowded, port: int, deep: int) -> Mapping[str, bytes]:
    """The requests for every list of the API, of the tools and of the console, by what they list and who asks.

    port    the port of the service, which the name of the cookie contains
    deep    the offset of pages far behind the first
    """
    keys = {"organizer": crowded.key, "small organizer": crowded.small_key, "admin": crowded.admin_key}
    requests: dict[str, bytes] = {}
    for who, key in keys.items():
        for noun in ("organizers", "users", "events", "registrations", "queues"):
            requests[f"{noun}, {who}"] = load.request("GET", f"/api/{noun}?limit=100", key)
            if noun != "organizers" and who != "small organizer":
                path = f"/api/{noun}?limit=100&offset={deep}"
                requests[f"{noun}, {who}, {FAR}"] = load.request("GET", path, key)
        if who != "small organizer":
            for which, event, offset in (
                ("a big event", crowded.event, 0),
                (f"a big event, {FAR}", crowded.event, deep),
                ("a small event", crowded.event + 1, 0),
            ):
                path = f"/api/registrations?limit=100&event_id={event}&offset={offset}"
                requests[f"registrations of {which}, {who}"] = load.request("GET", path, key)
    requests["keys, organizer"] = load.request("GET", "/api/keys", crowded.key)
    requests["price history"] = load.request("GET", f"/api/events/{crowded.event + 1}/price_history", crowded.key)
    for noun in ("organizers", "users", "events", "registrations", "queues"):
        requests[f"tool list_{noun}"] = call(crowded.key, f"list_{noun}", {"limit": 100})
    event = f"/console/events/{crowded.event}"
    for name, path in {
        "events": "/console",
        "an event": event,
        "registrations": f"{event}/registrations",
        "registrations with a seat": f"{event}/registrations?state=registered",
        "registrations that wait": f"{event}/registrations?state=waitlisted",
        "registrations without a place": f"{event}/registrations?state=rejected",
        "registrations that are held": f"{event}/registrations?state=held",
        "registration of an address": f"{event}/registrations?q=person77%40example.com",
        "registrations by a part of an address": f"{event}/registrations?q=person77",
        "registrations by a text that nobody has": f"{event}/registrations?q=nobody",
        "payments of an event": f"{event}/payments",
        "mails": "/console/mails",
        "mails that failed": "/console/mails?status=failed",
        "queues": "/console/queues",
        "keys": "/console/agents",
    }.items():
        requests[f"console: {name}"] = load.request("GET", path, Cookie=f"session-{port}={crowded.session}")
    return requests


def paths(crowded: Crowded, port: int) -> Mapping[str, Path]:
    """The hot paths by their names."""

    def accept(count: int, run: int) -> Iterator[bytes]:
        for number in range(count):
            body = {"registration": {"event_id": crowded.event, "email": f"r{run}n{number}@example.com"}}
            yield load.request("POST", "/api/registrations", crowded.key, msgspec.json.encode(body))

    def accept_known(count: int, run: int) -> Iterator[bytes]:
        event = new_event(crowded, port)
        for number in range(count):
            body = {"registration": {"event_id": event, "user_id": person(1 + number % crowded.people)}}
            yield load.request("POST", "/api/registrations", crowded.key, msgspec.json.encode(body))

    def poll(among: int, count: int) -> Iterator[bytes]:
        for number in range(count):
            # Never two neighbours. Every tenth person has a seat.
            path = f"/api/registrations/{crowded.event}/{person(10 * (1 + number * 7_919 % among))}"
            yield load.request("GET", path, crowded.key)

    def poll_some(count: int, run: int) -> Iterator[bytes]:
        return poll(min(100, crowded.people // 10), count)

    def poll_all(count: int, run: int) -> Iterator[bytes]:
        return poll(crowded.people // 10, count)

    def join(count: int, run: int) -> Iterator[bytes]:
        for number in range(count):
            body = msgspec.json.encode({"visitor_id": f"r{run}n{number}"})
            yield load.request("POST", f"/api/queues/{crowded.queue}/join", crowded.key, body)

    return {
        "accepted by new e-mail": Path(accept, 202),
        "accepted by user id": Path(accept_known, 202),
        "status polls of a hundred people": Path(poll_some, 200),
        "status polls of all people": Path(poll_all, 200),
        "joins of a queue": Path(join, 202),
    }


def new_event(crowded: Crowded, port: int) -> int:
    """An event of the organizer with a seat for every person."""
    event = {"title": "Sale", "body": "-", "datetime": "2099-01-01T00:00:00Z", "price": 0, "pricing_mode": "free"}
    answer = httpx2.post(
        f"http://127.0.0.1:{port}/api/events",
        json={"event": event | {"capacity": 100_000_000}},
        headers={"X-API-Key": crowded.key},
    )
    return answer.raise_for_status().json()["data"]["id"]
