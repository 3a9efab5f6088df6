"""Upgrading a database from before there were mails, with people in it."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast.events.mails import announcements
from holdfast.events.product import EVENTS
from holdfast.kit.migrate import migrate, read
from tests.databases import scratch_database
from tests.support import Client, running, unlimited

PEOPLE = """
insert into users (public_id, email, name, role, slug)
values ('organize', 'ada@example.com', 'Ada', 'organizer', 'ada'), ('aaaaaaaa', 'ann@example.com', null, 'user', null),
       ('bbbbbbbb', 'bob@example.com', null, 'user', null), ('cccccccc', 'cy@example.com', null, 'user', null);
insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode, price,
                    recurrence_frequency, recurrence_interval, recurs_from)
select 1, 'Life drawing', 'Bring a pencil.', day, 2, 5, 'EUR', 'free', 0, 'none', 0, day
  from (values (now() + interval '1 day'), (now() - interval '1 day')) as days (day);
insert into registrations (event_id, user_id, arrival, status, amount_paid, received_at, settled_at)
values (1, 2, 1, 'registered', 0, now(), now()), (2, 2, 2, 'registered', 0, now(), now()),
       (1, 3, 3, 'pending', 0, now(), null);
"""


@pytest.fixture
def old_url(template_url: str) -> Iterator[str]:
    """A database as it was before there were mails."""
    with scratch_database(template_url, "old", "template template1") as url:
        migrate(url, [each for each in read(EVENTS.migrations[-1]) if each.name < "0012"])
        with psycopg.connect(url) as connection:
            connection.execute(PEOPLE)
        yield url


async def test_people_who_registered_before_mails_are_told_only_of_what_happens_later(
    old_url: str, tmp_path: Path
) -> None:
    EVENTS.migrate(old_url)
    async with running(unlimited(old_url, tmp_path)) as service:
        await announcements.tell(service.database)
        assert await service.run_sql("select from mails") == []

        await service.settle()
        admin = await service.admin()
        for event_id in (1, 2):
            assert (await admin.delete(f"/api/events/{event_id}")).status_code == 200
        await announcements.tell(service.database)
        assert await service.run_sql("select kind, recipient from mails order by id") == [
            ("seat", "bob@example.com"),
            ("event_cancelled", "ann@example.com"),
            ("event_cancelled", "bob@example.com"),
        ]


async def test_registrations_from_before_are_listed_by_their_organizer(old_url: str, tmp_path: Path) -> None:
    EVENTS.migrate(old_url)
    async with running(unlimited(old_url, tmp_path)) as service:
        admin = await service.admin()
        key = (await admin.post("/api/keys", {"api_key": {"name": "Ada", "user_id": 1}})).json()["data"]
        ada = Client(service.http, key["key"])
        listed = (await ada.get("/api/registrations")).json()["data"]
        assert [(each["event_id"], each["email"]) for each in listed] == [
            (1, "ann@example.com"),
            (2, "ann@example.com"),
        ]
