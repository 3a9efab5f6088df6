"""Mails are sent while processes and the mail server fail: each arrives, in the order of its thread, once if it can be.

A client that sends anything after a mail was accepted proves that it knew of the confirmation. A second copy is right
only before that: a process was killed, or its connection was lost, between the mail server's answer and the commit.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from holdfast.kit.mail.sender import MAX_CONNECTIONS
from holdfast.kit.mail.shards import MAX_READ_SECONDS
from tests.faults.mail_senders import mail_senders, publish, wait_for_mails
from tests.helpers.events_service import eventually
from tests.helpers.processes import Process, establish_organizers, register_all
from tests.helpers.smtp import BREAK, NEVER, MailServer
from tests.models.history import agree
from tests.models.machine import SOAK

PEOPLE = 5_000 if SOAK else 60
MAILBOXES = PEOPLE // 5
"""Several people have one mailbox: then a process has several mails of a share to send."""

MAILS_OF_A_PERSON = 20 if SOAK else 6
MAILS = PEOPLE * MAILS_OF_A_PERSON
TIMEOUT_SECONDS = 7_200 if SOAK else 120

FAULTS = ("kill", "stall", "kill", "away") if not SOAK else ("kill", "stall", "kill", "away", "hang") * 10
"""What fails, one after the other."""

AWAY_SECONDS = 600 if SOAK else 2
"""How long the mail server is away, the first time. Later it is away for two seconds."""


class Mailboxes:
    """The mails of all people, the processes that send them, and the mail server that takes some of them late."""

    def __init__(self, database_url: str, processes: list[Process], server: MailServer) -> None:
        self._database_url = database_url
        self._processes = processes
        self._server = server
        self._chance = random.Random(11)
        self.kills = self.stalls = self.breaks = 0
        """How often a process was killed or stalled, and how often the server broke a connection."""

    def refuse_some(self) -> None:
        """Let the mail server defer one mail of every fourth person, or break the connection at it."""
        for number in range(0, PEOPLE, 16):
            self._server.answers[f"DATA {_address(number)}"] = ["451 4.7.1 later", "", "451 4.7.1 later", ""]
            self._server.answers[f"RCPT {_address(number + 4)}"] = [BREAK, ""]
            self._server.answers[f"DATA {_address(number + 8)}"] = [BREAK, ""]
            self._server.answers[f"RCPT {_address(number + 12)}"] = ["450 4.2.1 busy", "", "451 4.7.1 later", ""]
            self.breaks += 2

    async def cause(self) -> None:
        """Cause further mails for each person, in the same thread."""
        with psycopg.connect(self._database_url) as connection:
            connection.execute(
                "insert into mails (kind, thread, recipient, arguments)"
                " select kind, thread, recipient, arguments from mails, generate_series(2, %s) as copy"
                " order by copy, id",
                [MAILS_OF_A_PERSON],
            )

    async def fail(self) -> None:
        """Let everything fail in turn, with some mails in between."""
        is_first_absence = True
        for number, fault in enumerate(FAULTS):
            await self.ended((number + 1) * MAILS // (len(FAULTS) + 1))
            process, other = self._chance.sample(self._processes, 2)
            if fault == "kill":
                self.kills += 1
                process.kill()
                await asyncio.to_thread(process.start)
            elif fault == "stall":
                await self._stall(process, other)
            elif fault == "away":
                self._server.stop()
                self.breaks += 2 * MAX_CONNECTIONS
                await asyncio.sleep(AWAY_SECONDS if is_first_absence else 2)
                is_first_absence = False
                self._server.start()
            else:
                self._server.answers[f"RCPT {_address(self._chance.randrange(PEOPLE))}"] = [NEVER, ""]

    async def _stall(self, process: Process, other: Process) -> None:
        """Halt a process until another has sent mails of its shares.

        Leases are ended by hand, but only after what was read of them is too old to be used.
        """
        self.stalls += 1
        process.suspend()
        other.suspend()
        with psycopg.connect(self._database_url, autocommit=True) as connection:
            connection.execute("select pg_sleep(%s)", [MAX_READ_SECONDS])
            connection.execute("update mail_shares set due_at = now() where due_at > now()")
        other.resume()
        await self.ended(min(len(self._server.copies) + MAILS // 8, MAILS))
        process.resume()

    async def ended(self, count: int) -> None:
        """Wait until this many mails have ended. Those that the mail server has deferred are due at once."""
        ended = 0

        async def have_ended() -> bool:
            nonlocal ended
            with psycopg.connect(self._database_url) as connection:
                connection.execute(
                    "update mails set due_at = now()"
                    " where ended_at is null and hold is null and due_at > now() and attempts > 0"
                )
                connection.execute("select pg_notify('holdfast', 'mails ')")
                [(ended,)] = connection.execute("select count(*) from mails where ended_at is not null")
            return ended >= count

        try:
            await eventually(have_ended, TIMEOUT_SECONDS)
        except TimeoutError:
            agree(ended >= count, f"only {ended} of {count} mails have ended after {TIMEOUT_SECONDS} s")


def _address(number: int) -> str:
    return f"person{number % MAILBOXES}+{number}@example.com"


async def test_mails_arrive_in_order_while_processes_and_the_mail_server_fail(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_senders(database_url, tmp_path, monkeypatch) as (server, processes):
        key, event = await publish(processes[0], PEOPLE)
        establish_organizers(database_url)
        people = iter([{"event_id": event, "email": _address(number)} for number in range(PEOPLE)])
        await register_all(processes, key, people, connections=8)
        await wait_for_mails(server, PEOPLE)
        mailboxes = Mailboxes(database_url, processes, server)
        mailboxes.refuse_some()
        await mailboxes.cause()
        await mailboxes.fail()
        await mailboxes.ended(MAILS)
    explain(database_url, server, mailboxes)


def explain(database_url: str, server: MailServer, mailboxes: Mailboxes) -> None:
    """Fail unless what has arrived agrees with what was stored, and with what has failed."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("select id, recipient, outcome from mails order by id").fetchall()
    unsent = [row for row in rows if row[2] != "sent"]
    agree(not unsent, f"{len(unsent)} mails were not sent: {unsent[:3]}")
    ids = {int(message_id.partition(".")[0]) for message_id in server.copies}
    missing = [row for row in rows if row[0] not in ids]
    agree(not missing, f"{len(missing)} mails are stored as sent, and have not arrived: {missing[:3]}")
    agree(len(server.copies) == len(rows), f"{len(rows)} mails arrived with {len(server.copies)} ids")

    order: dict[str, list[int]] = {}
    for message_id, copies in server.copies.items():  # in the order of their first arrival
        order.setdefault(copies[0].recipient, []).append(int(message_id.partition(".")[0]))
    for recipient, arrivals in order.items():
        agree(arrivals == sorted(arrivals), f"mails to {recipient} arrived in the order {arrivals}")

    wrong = [received.message_id for received in server.received if received.is_wrong]
    # A process that is halted right between reading its lease and the content sends that one mail.
    agree(
        len(wrong) <= mailboxes.stalls,
        f"{len(wrong)} mails were sent again after their confirmation was known: {wrong[:3]}",
    )
    second_copies = len(server.received) - len(server.copies)
    allowed = MAX_CONNECTIONS * mailboxes.kills + mailboxes.breaks + mailboxes.stalls
    agree(second_copies <= allowed, f"{second_copies} second copies arrived, and at most {allowed} may")
    print(Counter(len(copies) for copies in server.copies.values()), f"{mailboxes.kills} kills")
