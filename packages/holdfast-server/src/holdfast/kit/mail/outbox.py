"""The outbox: a table of the mails that transactions have caused, until they are sent, and the results of attempts.

The transaction that causes a mail writes its row. `sender.py` sends it. Mails of one thread are sent strictly in order:
while one of them waits, the later ones wait too. Apart from that, owners take turns (`turns.py`). All mails to one
mailbox are in one shard, which one process at a time sends (`shards.py`). The results of attempts are stored for all
waiting callers in one statement.

When a held mail may be sent is decided by a rule of the service, not by the mail server. Its row has the reason why it
is held, and it is checked again at its `due_at`. Later mails of its thread are held too.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, LiteralString

import msgspec
from msgspec import Struct

from holdfast.kit.background.row_work import RetryBackoff
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.postgres.connection_pool import RETRY_SECONDS
from holdfast.kit.postgres.database import Database, Tx, Writer

MailOutcome = Literal["sent", "superseded", "failed"]

CHANNEL: LiteralString = "mails"

MAX_ATTEMPTS = 22
"""Attempts for a mail that the mail server defers: they last three days, with the pauses below."""

RETRY_BACKOFF = RetryBackoff(30, 21_600)

RENDER_ERROR_PREFIX = "it could not be written"
"""The prefix of the error of a mail that could not be rendered."""

OWNER: LiteralString = "coalesce(arguments ->> 'organizer_id', arguments ->> 'merchant_id', '')"
"""SQL: the owner of a mail, an organizer or a merchant, as the index `mails_in_turns` has it.

It is empty for mails of neither, such as a link to sign in.
"""

BATCH_SIZE = 1_000
"""Mails whose hold one statement ends."""

DELETE_BATCH_SIZE = 5_000
"""Mails that one transaction deletes."""


class Mail(Struct):
    """A due mail, as its transaction has stored it.

    is_behind    whether an earlier mail of its thread is held
    owner        the organizer or merchant whose mail it is; empty for a mail of neither, such as a link to sign in
    shard        the number of the shard of its mailbox
    """

    id: int
    kind: str
    thread: str
    recipient: str
    arguments: dict[str, Any]
    inserted_at: datetime
    attempts: int
    is_behind: bool = False
    owner: str = ""
    shard: int = 0

    def message_id(self, domain: str) -> str:
        """The Message-ID of this mail. It is the same in each attempt, and unique."""
        return f"{self.id}.{round(self.inserted_at.timestamp() * 1_000_000)}@{domain}"


class HeldMailResult(Struct):
    """The result of rendering a mail that stays in the outbox and is held."""


class AttemptResult(Struct):
    """The result of one attempt. Without an outcome, the mail is deferred for `pause` seconds."""

    id: int
    outcome: MailOutcome | None
    error: str | None = None
    pause: float = 0


def deferred_result(mail: Mail, error: str) -> AttemptResult:
    """The result of an attempt after which a mail is tried again, or fails if that was the last attempt."""
    if mail.attempts + 1 >= MAX_ATTEMPTS:
        return AttemptResult(mail.id, "failed", error)
    return AttemptResult(mail.id, None, error, RETRY_BACKOFF.pause(mail.attempts + 1))


async def end_due_holds(writer: Writer[Any]) -> None:
    """End the hold of held mails that are due: it is decided again whether they may be sent."""
    await writer.value(
        """
        with due_mail as (
            select id from mails where ended_at is null and hold is not null and due_at <= now()
             order by due_at, id limit %(limit)s for update skip locked),
        released as (
            update mails set hold = null, released_at = now() from due_mail where mails.id = due_mail.id
            returning 1)
        select count(*) from released
        """,
        {"limit": BATCH_SIZE},
    )


async def hold_later_mails(writer: Writer[Any], ids: Sequence[int]) -> None:
    """Hold mails as long as the mail before them in their thread is held."""
    # The lock ensures that the mail before is still held when this is stored, so that its release releases both.
    await writer.value(
        """
        with held as (
            update mails set hold = before.hold, due_at = before.due_at, bulk = true
              from mails as later
             cross join lateral (
                select hold, due_at from mails as earlier
                 where earlier.thread = later.thread and earlier.ended_at is null and earlier.id < later.id
                   and earlier.hold is not null
                 order by earlier.id desc limit 1 for share) as before
             where later.id = any(%(ids)s) and mails.id = later.id and mails.ended_at is null
         returning 1)
        select count(*) from held
        """,
        {"ids": list(ids)},
    )


async def store_results(writer: Writer[Any], results: Sequence[AttemptResult]) -> None:
    """Store the results of attempts.

    This is one statement outside a transaction, so that a process that is stopped in the middle of it locks no row.
    """
    await writer.value(
        """
        with stored_result as (
            update mails
               set attempts = attempts + 1, outcome = result.outcome, error = result.error,
                   ended_at = case when result.outcome is not null then now() end,
                   due_at = now() + result.pause * interval '1 second'
              from json_to_recordset(%(results)s::json) as result (id bigint, outcome text, error text, pause float8)
             where mails.id = result.id and mails.ended_at is null
         returning 1)
        select count(*) from stored_result
        """,
        {"results": msgspec.json.encode(results).decode()},
    )


async def store_error(writer: Writer[Any], id: int, error: str) -> None:
    """Store why a mail waits, if the mail itself is not the cause. It counts as no attempt.

    It may name the mail server of the operator: others do not see the error of a mail that waits without an attempt.
    """
    await writer.value(
        "update mails set error = %(error)s where id = %(id)s and ended_at is null and attempts = 0 returning id",
        {"id": id, "error": error},
    )


async def forget_recipient(tx: Tx[Any], recipient: str) -> int:
    """Delete the mails to one recipient, including waiting ones. Returns the number of deleted mails.

    A mail that is being sent at this moment still arrives.
    """
    return await tx.value(
        """
        with deleted as (delete from mails where recipient = %(recipient)s returning 1)
        select count(*) from deleted
        """,
        {"recipient": recipient},
    )


async def retry_mail(tx: Tx[Any], id: int) -> None:
    """Retry a failed or deferred mail now. Raises `not_found`.

    For a held mail, it is decided again whether it may be sent.
    """
    is_retried = await tx.value(
        """
        update mails set outcome = null, ended_at = null, attempts = 0, due_at = now(), hold = null
         where id = %(id)s and (outcome = 'failed' or ended_at is null) returning true
        """,
        {"id": id},
    )
    if not is_retried:
        raise NOT_FOUND(f"No mail with the id {id} waits or has failed.")
    await tx.notify(CHANNEL)


async def forget_mails(tx: Tx[Any]) -> int:
    """Delete a batch of the mails that ended 30 days ago. Returns the number of deleted mails."""
    return await tx.value(
        """
        with ended_mail as (
            select id from mails where ended_at < now() - interval '30 days'
             limit %(limit)s for update skip locked),
        deleted as (delete from mails using ended_mail where mails.id = ended_mail.id returning 1)
        select count(*) from deleted
        """,
        {"limit": DELETE_BATCH_SIZE},
    )


class ResultWriter:
    """Stores results of attempts. While the database is unreachable, it keeps them, and stores them when it is back."""

    def __init__(self, database: Database[Any]) -> None:
        self._database = database
        self._waiting: list[AttemptResult] = []
        self._storing: asyncio.Task[None] | None = None

    async def add(self, result: AttemptResult) -> None:
        """Store the result of an attempt. Returns after the commit."""
        self._waiting.append(result)
        await self._wait_for(result)

    async def wait_until_stored(self) -> None:
        """Wait until the results that wait now are stored."""
        for result in tuple(self._waiting):
            await self._wait_for(result)

    async def _wait_for(self, result: AttemptResult) -> None:
        while any(waiting_result is result for waiting_result in self._waiting):
            if self._storing is None or self._storing.done():
                self._storing = asyncio.create_task(self._store(), name="mails: store")
            # A waiting caller may be cancelled; the results of the others are still stored.
            await asyncio.shield(self._storing)

    async def _store(self) -> None:
        """Store all waiting results."""
        batch = list(self._waiting)
        while True:
            try:
                await self._database.autocommit(lambda writer: store_results(writer, batch))
                break
            except Problem as problem:
                if problem.type is not SERVICE_UNAVAILABLE:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
        del self._waiting[: len(batch)]
