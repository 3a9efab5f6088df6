"""The event, the owner and the person that a registration names exist, and are kept, as by foreign keys."""

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

import psycopg
import pytest
from psycopg.errors import ForeignKeyViolation

from tests.helpers.events_service import Service, eventually

REGISTER = """
    insert into registrations (event_id, organizer_id, user_id, arrival, received_at, amount_paid)
    values (%(event)s, %(organizer)s, %(person)s, 1, now(), 0)
"""


class ReferenceRows(NamedTuple):
    """Two sessions of the database, an event, its organizer, a person who is registered and one who is not."""

    first: psycopg.AsyncConnection
    second: psycopg.AsyncConnection
    service: Service
    ids: dict[str, int]

    async def is_waiting(self) -> bool:
        [(waits,)] = await self.service.run_sql(
            "select wait_event_type is not distinct from 'Lock' from pg_stat_activity where pid = %(pid)s",
            pid=self.second.info.backend_pid,
        )
        return waits


@pytest.fixture
async def rows(service: Service) -> AsyncGenerator[ReferenceRows]:
    ada = await service.organizer()
    event = await ada.create_event()
    await ada.register(event["id"], email="registered@example.com")
    await service.run_sql("insert into users (public_id, email) values ('aaaaaaaa', 'free@example.com')")
    people = dict(await service.run_sql("select email, id from users"))
    ids = {
        "event": event["id"],
        "organizer": ada.id,
        "registered": people["registered@example.com"],
        "person": people["free@example.com"],
        "nobody": 1_000_000,
    }
    connect = psycopg.AsyncConnection.connect
    async with await connect(service.database.url) as first, await connect(service.database.url) as second:
        yield ReferenceRows(first, second, service, ids)
        await first.rollback()
        await second.rollback()


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        (REGISTER.replace("%(person)s", "%(nobody)s"), "registrations_user_id_fkey"),
        (REGISTER.replace("%(organizer)s", "%(person)s"), "registrations_event_id_fkey"),
        (REGISTER.replace("%(event)s", "%(nobody)s"), "registrations_event_id_fkey"),
        ("update registrations set user_id = %(nobody)s", "registrations_user_id_fkey"),
        ("update registrations set organizer_id = %(person)s", "registrations_event_id_fkey"),
        ("update registrations set event_id = %(nobody)s", "registrations_event_id_fkey"),
        ("delete from users where id in (%(person)s, %(registered)s)", "registrations_user_id_fkey"),
        ("delete from event_owners where event_id = %(event)s", "registrations_event_id_fkey"),
        ("update users set id = default where id = %(registered)s", None),
        ("update event_owners set organizer_id = %(person)s where event_id = %(event)s", None),
    ],
)
async def test_no_statement_can_leave_a_registration_without_event_owner_or_person(
    rows: ReferenceRows, statement: str, constraint: str
) -> None:
    with pytest.raises(ForeignKeyViolation) as refusal:
        await rows.first.execute(statement.encode(), rows.ids)

    assert refusal.value.diag.constraint_name == constraint


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_deletion_of_a_person_waits_for_their_registration(rows: ReferenceRows, ends: str) -> None:
    await rows.first.execute(REGISTER, rows.ids)
    deletion = asyncio.create_task(rows.second.execute("delete from users where id = %(person)s", rows.ids))
    await eventually(rows.is_waiting)

    await (rows.first.commit() if ends == "commit" else rows.first.rollback())

    if ends == "commit":
        with pytest.raises(ForeignKeyViolation, match=f"Account {rows.ids['person']} has registrations"):
            await deletion
    else:
        assert (await deletion).rowcount == 1


@pytest.mark.parametrize("ends", ["commit", "rollback"])
async def test_a_registration_waits_for_the_deletion_of_its_person(rows: ReferenceRows, ends: str) -> None:
    await rows.first.execute("delete from users where id = %(person)s", rows.ids)
    registration = asyncio.create_task(rows.second.execute(REGISTER, rows.ids))
    await eventually(rows.is_waiting)

    await (rows.first.commit() if ends == "commit" else rows.first.rollback())

    if ends == "commit":
        with pytest.raises(ForeignKeyViolation, match=f"account {rows.ids['person']}, which does not exist"):
            await registration
    else:
        assert (await registration).rowcount == 1


async def test_a_registration_does_not_wait_for_the_end_of_a_handover(rows: ReferenceRows) -> None:
    await rows.service.run_sql("insert into event_owners values (%(event)s, %(registered)s)", **rows.ids)
    await rows.first.execute("delete from event_owners where organizer_id = %(registered)s", rows.ids)

    await rows.second.execute("set lock_timeout = '1s'")

    assert (await rows.second.execute(REGISTER, rows.ids)).rowcount == 1
