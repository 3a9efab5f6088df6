"""The outbox: mails that transactions have caused, in a table, until they are sent.

A row is written by the transaction that causes the mail. `sender.py` sends it. Mails of one thread are sent strictly in
order: while one of them waits, the later ones wait too.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, LiteralString

import msgspec
from msgspec import Struct
from prometheus_client import Counter, Gauge

from holdfast.kit.database import Reader, Tx
from holdfast.kit.migrate import Migration
from holdfast.kit.problems import NOT_FOUND

Outcome = Literal["sent", "superseded", "failed"]

CHANNEL: LiteralString = "mails"

MAILS = Counter("holdfast_mails", "Mails that ended, or were put off by the mail server.", ["outcome"])
WAITING = Gauge("holdfast_mails_waiting", "Mails that wait to be sent.", multiprocess_mode="mostrecent")
OLDEST = Gauge("holdfast_mails_oldest_seconds", "How long the oldest of them waits.", multiprocess_mode="mostrecent")

COUNTED = 100_000
"""The most waiting mails that are counted."""

LISTED = 100
"""The most mails that are listed at once."""

ATTEMPTS = 22
"""How often a mail is tried that the mail server puts off: for three days, with the pauses below."""

PAUSES = (30, 21_600)
"""Seconds until it is tried again, at first and at most; they double from one attempt to the next."""

UNWRITTEN = "it could not be written"
"""How the error of a mail begins that nobody could write."""

PORTION = 5_000
"""Mails that one transaction deletes."""

TABLE: LiteralString = f"""
create table mails (
    id           bigint generated always as identity primary key,
    kind         text not null check (length(kind) between 1 and 100),
    thread       text not null check (length(thread) between 1 and 200),
    bulk         boolean not null default false,
    recipient    text not null,
    arguments    jsonb not null,
    inserted_at  timestamptz not null default now(),
    due_at       timestamptz not null default now(),
    attempts     integer not null default 0 check (attempts >= 0),
    ended_at     timestamptz,
    outcome      text check (outcome in ('sent', 'superseded', 'failed')),
    error        text check (length(error) <= 1000),
    check ((outcome is null) = (ended_at is null)),
    check (outcome is distinct from 'failed' or error is not null)
);
comment on column mails.thread is 'Mails of one thread are sent in the order of their ids.';
comment on column mails.bulk is 'Whether it is one of many with one cause: the others go before it.';
comment on column mails.error is 'What the mail server said to the last attempt.';
create index mails_to_send on mails (bulk, due_at, id) where ended_at is null;
create index mails_in_threads on mails (thread, id) where ended_at is null;
create index mails_ended on mails (ended_at) where ended_at is not null;
create index mails_failed on mails (id) where outcome = 'failed';

create function tell_of_mails() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', '{CHANNEL} ');
    return null;
end $$;
create trigger tell_of_mails after insert on mails for each statement execute function tell_of_mails();

-- The process that sends mails has locked this table, which is always empty.
create table mail_sender ();
"""

OF_RECIPIENTS: LiteralString = "create index mails_of_recipient on mails using hash (recipient)"

TOLD_IF_ANY: LiteralString = f"""
-- A statement that inserts no mail tells nobody: else every registration would, which may cause mails.
create or replace function tell_of_mails() returns trigger language plpgsql as $$
begin
    if exists (select from inserted) then
        perform pg_notify('holdfast', '{CHANNEL} ');
    end if;
    return null;
end $$;
drop trigger tell_of_mails on mails;
create trigger tell_of_mails after insert on mails referencing new table as inserted
    for each statement execute function tell_of_mails();
"""


def schema() -> list[Migration]:
    return [
        Migration("mails", TABLE),
        Migration("mails_of_recipient", OF_RECIPIENTS),
        Migration("mails_told_if_any", TOLD_IF_ANY),
    ]


class Mail(Struct):
    """A mail that is due, as the transaction that caused it has stored it."""

    id: int
    kind: str
    thread: str
    recipient: str
    arguments: dict[str, Any]
    inserted_at: datetime
    attempts: int

    def message_id(self, domain: str) -> str:
        """The name of this mail; the same in each attempt, and never that of another mail."""
        return f"{self.id}.{round(self.inserted_at.timestamp() * 1_000_000)}@{domain}"


class Ended(Struct):
    """What came of one attempt. Without an outcome the mail is put off for `pause` seconds."""

    id: int
    outcome: Outcome | None
    error: str | None = None
    pause: float = 0


def put_off(mail: Mail, error: str) -> Ended:
    """What comes of an attempt after which a mail may be tried again."""
    if mail.attempts + 1 >= ATTEMPTS:
        return Ended(mail.id, "failed", error)
    first, longest = PAUSES
    return Ended(mail.id, None, error, min(first * 2**mail.attempts, longest))


async def due(reader: Reader[Any], limit: int, busy: Sequence[int]) -> list[Mail]:
    """The first mails that are due, except the busy ones, and of each thread only the first."""
    return await reader.rows(
        Mail,
        """
        select id, kind, thread, recipient, arguments, inserted_at, attempts from mails
         where ended_at is null and due_at <= now() and id <> all(%(busy)s)
           and not exists (select from mails as earlier
                            where earlier.thread = mails.thread and earlier.ended_at is null
                              and earlier.id < mails.id)
         order by bulk, due_at, id limit %(limit)s
        """,
        {"limit": limit, "busy": list(busy)},
    )


async def next_due(reader: Reader[Any]) -> float | None:
    """Seconds until a mail that was put off is due; None if there is none."""
    return await reader.value(
        """
        select extract(epoch from min(due_at) - clock_timestamp())::float8 from mails
         where ended_at is null and due_at > now()
        """
    )


async def measure(reader: Reader[Any]) -> None:
    """Bring the figures of what waits up to date."""
    [(waiting, oldest)] = await reader.tuples(
        """
        select count(*), coalesce(extract(epoch from now() - min(inserted_at)), 0)::float8
          from (select inserted_at from mails where ended_at is null limit %(counted)s) as waiting
        """,
        {"counted": COUNTED},
    )
    WAITING.set(waiting)
    OLDEST.set(oldest)


def leave_measuring() -> None:
    """Tell nothing of what waits any more: another process does from now on."""
    WAITING.set(0)
    OLDEST.set(0)


async def end(reader: Reader[Any], ended: Sequence[Ended]) -> None:
    """Store what came of attempts.

    It is one statement without a transaction around it: a process that is stopped in the middle of it locks no row.
    """
    await reader.value(
        """
        with ended as (
            update mails
               set attempts = attempts + 1, outcome = each.outcome, error = each.error,
                   ended_at = case when each.outcome is not null then now() end,
                   due_at = now() + each.pause * interval '1 second'
              from json_to_recordset(%(ended)s::json) as each (id bigint, outcome text, error text, pause float8)
             where mails.id = each.id and mails.ended_at is null
         returning 1)
        select count(*) from ended
        """,
        {"ended": msgspec.json.encode(ended).decode()},
    )


class Listed(Struct):
    """A mail that waits or has failed, for operators."""

    id: int
    state: Literal["waiting", "failed"]
    kind: str
    recipient: str
    attempts: int
    inserted_at: datetime
    due_at: datetime
    error: str | None


async def unsent(reader: Reader[Any]) -> list[Listed]:
    """The newest mails that failed, and then the oldest that wait; at most `LISTED` of each."""
    return await reader.rows(
        Listed,
        """
        (select id, 'failed' as state, kind, recipient, attempts, inserted_at, due_at, error from mails
          where outcome = 'failed' order by id desc limit %(listed)s)
        union all
        (select id, 'waiting', kind, recipient, attempts, inserted_at, due_at, error from mails
          where ended_at is null order by bulk, due_at, id limit %(listed)s)
        """,
        {"listed": LISTED},
    )


class Received(Struct):
    """A mail to one recipient, for the recipient."""

    kind: str
    arguments: dict[str, Any]
    inserted_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None
    attempts: int
    error: str | None


async def mails_to(reader: Reader[Any], recipient: str) -> list[Received]:
    """The mails to one recipient that are kept, oldest first."""
    return await reader.rows(
        Received,
        """
        select kind, arguments, inserted_at, ended_at, outcome, attempts, error from mails
         where recipient = %(recipient)s order by id
        """,
        {"recipient": recipient},
    )


async def count_mails_to(reader: Reader[Any], recipient: str) -> int:
    return await reader.value("select count(*) from mails where recipient = %(recipient)s", {"recipient": recipient})


async def forget_recipient(tx: Tx[Any], recipient: str) -> int:
    """Delete the mails to one recipient, also those that wait. Returns how many were deleted.

    One that is being sent at this moment still arrives.
    """
    return await tx.value(
        """
        with deleted as (delete from mails where recipient = %(recipient)s returning 1)
        select count(*) from deleted
        """,
        {"recipient": recipient},
    )


async def retry(tx: Tx[Any], id: int) -> None:
    """Try a mail again now that failed, or that was put off. Raises `not_found`."""
    again = await tx.value(
        """
        update mails set outcome = null, ended_at = null, attempts = 0, due_at = now()
         where id = %(id)s and (outcome = 'failed' or ended_at is null) returning true
        """,
        {"id": id},
    )
    if not again:
        raise NOT_FOUND(f"No mail with the id {id} waits or has failed.")
    await tx.notify(CHANNEL)


async def forget_mails(tx: Tx[Any]) -> int:
    """Delete a portion of the mails that ended 30 days ago. Returns how many were deleted."""
    return await tx.value(
        """
        with old as (
            select id from mails where ended_at < now() - interval '30 days'
             limit %(limit)s for update skip locked),
        deleted as (delete from mails using old where mails.id = old.id returning 1)
        select count(*) from deleted
        """,
        {"limit": PORTION},
    )
