"""The order in the database: every arrival that it ever had, also of people who have left."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from tests.events.log.pending import commitment, moment

# A row for each moment at which a registration is stored, renewed, or gets its number, and for each ticket. They are
# written by the very statements that do it, so they are there if, and only if, it was done.
KEEP_ARRIVALS = """
    create table arrival_history (
        subject text, person text, at timestamptz, nonce text, number bigint, outcome text);
    create function keep_arrival() returns trigger language plpgsql as $$
    begin
        insert into arrival_history
        select 'event ' || new.event_id, public_id, new.received_at, new.nonce, new.log_number, new.status
          from users where id = new.user_id;
        return null;
    end $$;
    create function keep_ticket() returns trigger language plpgsql as $$
    begin
        insert into arrival_history
        values ('queue ' || new.queue_id, new.visitor_id, new.joined_at, new.nonce, new.ticket, null);
        return null;
    end $$;
    create trigger keep_accepted after insert on registrations for each row execute function keep_arrival();
    create trigger keep_renewed after update of status on registrations for each row
        when (new.status = 'pending' and old.status <> 'pending') execute function keep_arrival();
    create trigger keep_numbered after update of log_number on registrations for each row
        when (new.log_number is not null and new.log_number is distinct from old.log_number)
        execute function keep_arrival();
    create trigger keep_joined after insert or update of ticket on queue_visitors for each row
        execute function keep_ticket();
"""


@dataclass
class StoredArrival:
    """An arrival as the database had it; without a number while it was pending."""

    subject: str
    person: str
    at: datetime
    nonce: str
    number: int | None
    outcome: str | None

    @property
    def commitment(self) -> str:
        return commitment(self.subject, self.person, self.nonce)

    @property
    def entry(self) -> dict[str, Any]:
        """The entry that the log must have of it, if it has a number."""
        outcome = {} if self.outcome is None else {"outcome": self.outcome}
        at, person = moment(self.at), self.commitment
        return {"kind": "arrival", "number": self.number, "at": at, **outcome, "person": person}


@dataclass
class StoredOrder:
    """What the database knows of one event or queue.

    accepted     arrivals when they were stored; those of a queue have their tickets at once
    numbered     arrivals with their numbers
    statuses     of each number that is there now
    releases     the tickets that were let in, as first and last
    """

    accepted: Sequence[StoredArrival]
    numbered: Sequence[StoredArrival]
    statuses: dict[int, str]
    releases: list[tuple[int, int]]


def keep_arrivals(database_url: str) -> None:
    """Let the database keep all arrivals from now on."""
    with psycopg.connect(database_url) as connection:
        connection.execute(KEEP_ARRIVALS)


def pending_rows(database_url: str) -> int:
    """How much waits to be settled, sealed or signed."""
    with psycopg.connect(database_url) as connection:
        [(count,)] = connection.execute(
            """
            select (select count(*) from registrations where status = 'pending') + (select count(*) from log_pending)
                   + (select count(*) from log_heads where signed_size < size)
            """
        ).fetchall()
    return count


def read_order(database_url: str, subject: str) -> StoredOrder:
    """What the database knows of an event or queue, such as `event 7`."""
    noun, id = subject.split()
    with psycopg.connect(database_url) as connection:
        history = connection.execute(
            "select * from arrival_history where subject = %s order by number nulls first, at", [subject]
        ).fetchall()
        statuses = connection.execute(
            "select log_number, status::text from registrations where event_id = %s", [int(id)]
        ).fetchall()
        releases = connection.execute(
            "select first_ticket, last_ticket from queue_releases where queue_id = %s order by 1", [int(id)]
        ).fetchall()
    arrivals = [StoredArrival(*row) for row in history]
    numbered = [arrival for arrival in arrivals if arrival.number is not None]
    accepted = numbered if noun == "queue" else [arrival for arrival in arrivals if arrival.number is None]
    return StoredOrder(
        accepted, numbered, dict(statuses) if noun == "event" else {}, releases if noun == "queue" else []
    )
