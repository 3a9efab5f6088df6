"""Held mails of the outbox: not the mail server, but another rule decides when they may be sent.

A held mail has the reason why it is held. At its `due_at` it is checked again. Later mails of its thread are held too.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from holdfast.kit.postgres.database import Reader

BATCH_SIZE = 1_000
"""Mails that one statement releases."""


class HeldMail(Struct):
    """The result of rendering a mail that stays in the outbox and is held."""


async def release_due(reader: Reader[Any]) -> None:
    """Release the held mails that are due: it is decided again whether they may be sent."""
    await reader.value(
        """
        with due as (
            select id from mails where ended_at is null and hold is not null and due_at <= now()
             order by due_at, id limit %(limit)s for update skip locked),
        released as (
            update mails set hold = null, released_at = now() from due where mails.id = due.id returning 1)
        select count(*) from released
        """,
        {"limit": BATCH_SIZE},
    )


async def hold_behind(reader: Reader[Any], ids: Sequence[int]) -> None:
    """Hold mails as long as the mail before them in their thread is held."""
    # The lock ensures that the mail before is still held when this is stored, so that its release releases both.
    await reader.value(
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
