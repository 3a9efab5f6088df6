"""Lists of stored mails: those that were not sent, for operators, and those to one recipient, for the recipient."""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from holdfast.kit.mail.outbox import MailOutcome
from holdfast.kit.postgres.database import Reader

UnsentMailStatus = Literal["waiting", "held", "failed"]

MAX_LISTED_MAILS = 100
"""Mails in one list."""


class UnsentMail(Struct):
    """A waiting, held or failed mail, for operators."""

    id: int
    status: UnsentMailStatus
    kind: str
    recipient: str
    attempts: int
    inserted_at: datetime
    due_at: datetime
    error: str | None


async def unsent_mails(reader: Reader[Any], limit: int = MAX_LISTED_MAILS) -> list[UnsentMail]:
    """The newest failed mails, then the oldest waiting mails and the held ones; at most `limit` of each."""
    return await reader.rows(
        UnsentMail,
        """
        (select id, 'failed' as status, kind, recipient, attempts, inserted_at, due_at, error from mails
          where outcome = 'failed' order by id desc limit %(listed)s)
        union all
        (select id, 'waiting', kind, recipient, attempts, inserted_at, due_at, error from mails
          where ended_at is null and hold is null order by bulk, due_at, id limit %(listed)s)
        union all
        (select id, 'held', kind, recipient, attempts, inserted_at, due_at, error from mails
          where ended_at is null and hold is not null order by due_at, id limit %(listed)s)
        """,
        {"listed": limit},
    )


class RecipientMail(Struct):
    """A mail to one recipient, for the recipient."""

    kind: str
    arguments: dict[str, Any]
    inserted_at: datetime
    ended_at: datetime | None
    outcome: MailOutcome | None
    attempts: int
    error: str | None


async def mails_to(reader: Reader[Any], recipient: str) -> list[RecipientMail]:
    """The stored mails to one recipient, oldest first."""
    return await reader.rows(
        RecipientMail,
        """
        select kind, arguments, inserted_at, ended_at, outcome, attempts,
               case when attempts > 0 or ended_at is not null then error end as error
          from mails where recipient = %(recipient)s order by id
        """,
        {"recipient": recipient},
    )


async def count_mails_to(reader: Reader[Any], recipient: str) -> int:
    return await reader.value("select count(*) from mails where recipient = %(recipient)s", {"recipient": recipient})
