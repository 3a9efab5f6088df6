"""Registrations cause mails while processes are killed: none is lost, and none that was confirmed is sent again.

A client that sends anything after a mail was accepted proves that it knew of the confirmation. Until then a process may
have been killed before it could store it, and only then a second copy is allowed.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from holdfast.events.mails.limits import MAILS_PER_HOUR
from holdfast.kit.contract.addresses import mailbox
from holdfast.kit.mail.shards import MAX_READ_SECONDS
from tests.faults.mail_senders import mail_senders, publish, wait_for_mails
from tests.helpers.events_service import eventually, running_events, unlimited
from tests.helpers.processes import Process, establish_organizers, register_all
from tests.helpers.smtp import MailServer

SOAK = "HOLDFAST_SOAK" in os.environ
KILLS = 200 if SOAK else 3
PEOPLE = 20_000 if SOAK else 300
TIMEOUT_SECONDS = 1_800 if SOAK else 120
"""A busy machine needs a minute. A mail that does not arrive is told with what it waits for."""


async def test_mails_arrive_under_kills_and_none_that_was_confirmed_is_sent_again(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_senders(database_url, tmp_path, monkeypatch) as (server, processes):
        key, event = await publish(processes[0], PEOPLE)
        establish_organizers(database_url)
        people = iter([{"event_id": event, "email": f"{number}@example.com"} for number in range(PEOPLE)])
        async with in_time(database_url):
            _, orphans = await asyncio.gather(
                register_all(processes, key, people, connections=8), kill_now_and_then(processes, server)
            )

            async with running_events(unlimited(database_url, tmp_path)) as service:

                async def nothing_waits() -> bool:
                    [(waiting,)] = await service.run_sql(
                        "select (select count(*) from registrations where status = 'pending')"
                        " + (select count(*) from mails where ended_at is null)"
                    )
                    return waiting == 0

                await wait_for_mails(server, PEOPLE)
                await eventually(nothing_waits, seconds=60)
                await eventually(lambda: all_gone(orphans))
                rows = await service.run_sql("select recipient, kind, outcome from mails order by id")
                statuses = await service.run_sql(
                    "select email, status::text from registrations join users on users.id = user_id"
                )

    kinds = {"registered": "seat", "waitlisted": "waitlisted", "rejected": "refused"}
    assert len(statuses) == PEOPLE
    assert sorted(rows) == sorted((email, kinds[status], "sent") for email, status in statuses)
    assert len(server.copies) == PEOPLE
    assert {received.recipient for received in server.received} == {email for email, _ in statuses}
    assert not any(received.is_wrong for received in server.received)
    twice = len(server.received) - PEOPLE
    print(f"{KILLS} kills, {PEOPLE} mails, {twice} second copies, {len(orphans)} ends of the process that writes")
    assert orphans
    assert twice <= 4 * KILLS


async def test_a_stopped_sender_does_not_send_again_what_others_sent_meanwhile(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_senders(database_url, tmp_path, monkeypatch) as (server, processes):
        key, event = await publish(processes[0], PEOPLE)
        establish_organizers(database_url)
        people = iter([{"event_id": event, "email": f"{number}@example.com"} for number in range(200)])
        async with in_time(database_url):
            await register_all(processes, key, people, connections=8)
            await wait_for_mails(server, 20)
            for process in processes:
                process.suspend()
            # Leases of a process that does not go on end, but only after what it has read of them is too old to be
            # used. Its session ends too, since it is idle for too long.
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute("select pg_sleep(%s)", [MAX_READ_SECONDS])
                connection.execute("update mail_shares set due_at = now() where due_at > now()")
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_locks join pg_class on pg_class.oid = relation"
                    " where relname = 'mail_sender' and granted and mode = 'RowShareLock'"
                    " and database = (select oid from pg_database where datname = current_database())"
                )
            processes[1].resume()
            await wait_for_mails(server, 120)
            processes[0].resume()
            await wait_for_mails(server, 200)

    assert len(server.copies) == 200
    assert not any(received.is_wrong for received in server.received)


async def test_a_process_stopped_while_another_sent_its_shares_sends_nothing_again(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_senders(database_url, tmp_path, monkeypatch) as (server, processes):
        key, event = await publish(processes[0], PEOPLE)
        establish_organizers(database_url)
        people = iter([{"event_id": event, "email": f"{number}@example.com"} for number in range(200)])
        async with in_time(database_url):
            await register_all(processes, key, people, connections=8)
            await wait_for_mails(server, 20)
            processes[0].suspend()
            # The other process sends everything, also the shares of the one that was stopped: its leases end.
            await wait_for_mails(server, 200)
            processes[0].resume()
            await eventually(lambda: all_stored(database_url))

    assert len(server.copies) == 200
    assert not any(received.is_wrong for received in server.received)


async def test_a_mailbox_gets_no_more_mails_of_new_organizers_than_its_limit_while_processes_are_killed(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_senders(database_url, tmp_path, monkeypatch, 3) as (server, processes):
        key, event = await publish(processes[0], PEOPLE)
        establish_organizers(database_url, "1 day")
        people = iter(
            [
                {"event_id": event, "email": f"person{mailbox}+{tag}@example.com"}
                for tag in range(MAILS_PER_HOUR + 3)
                for mailbox in range(20)
            ]
        )
        async with in_time(database_url):
            await register_all(processes, key, people, connections=8)
            await wait_for_mails(server, 40)
            processes[0].suspend()
            processes[1].kill()
            await asyncio.to_thread(processes[1].start)
            await wait_for_mails(server, 20 * MAILS_PER_HOUR)
            processes[0].resume()
            await eventually(lambda: all_stored(database_url))

    mailboxes = Counter(mailbox(copies[0].recipient) for copies in server.copies.values())
    assert mailboxes == {f"person{number}@example.com": MAILS_PER_HOUR for number in range(20)}
    assert not any(received.is_wrong for received in server.received)


async def all_stored(database_url: str) -> bool:
    """Whether no mail waits that is not held."""
    with psycopg.connect(database_url) as connection:
        waits = connection.execute("select exists (select from mails where ended_at is null and hold is null)")
        return waits.fetchone() == (False,)


@asynccontextmanager
async def in_time(database_url: str) -> AsyncGenerator[None]:
    """Fail with the mails that still wait if the block takes too long."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            yield
    except TimeoutError:
        with psycopg.connect(database_url) as connection:
            waiting = connection.execute(
                "select id, kind, hold, attempts, error, extract(epoch from due_at - now())::int as due_in"
                "  from mails where ended_at is null order by due_at limit 20"
            ).fetchall()
            pending = connection.execute("select count(*) from registrations where status = 'pending'").fetchone()
        pytest.fail(f"After {TIMEOUT_SECONDS} s {pending} registrations are pending, and these mails wait: {waiting}")


async def kill_now_and_then(processes: list[Process], server: MailServer) -> list[psutil.Process]:
    """Kill one process, and what writes the mails of the other, whenever some more mails have arrived.

    Returns what wrote mails for these processes.
    """
    orphans: list[psutil.Process] = []
    between = PEOPLE // (KILLS + 1)
    for number in range(KILLS):
        await wait_for_mails(server, number * between + random.randint(1, between))
        process, other = random.sample(processes, 2)
        writers = [psutil.Process(process.id).children() for process in (process, other)]
        process.kill()
        for writer in writers[1]:
            writer.kill()
        orphans += [child for children in writers for child in children]
        await asyncio.to_thread(process.start)
    return orphans


async def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether they have ended, also those that nobody has killed."""
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)
