"""The rate at which all processes of a service together send mails."""

import asyncio
from typing import Any

from holdfast.kit.postgres.database import Database, Writer


class SendingRate:
    """The limit of mails a second, which all processes of a service share (`SMTP_MAX_PER_SECOND`).

    Turns are given out by one row of the database, by its clock: each begins one interval after the one before, and
    turns that no mail took are lost. A mail is sent after its turn has begun, and each connection sends one mail at a
    time. So in any time the mail server gets at most as many mails as the limit says, and one more on each connection,
    also if processes stall or are killed.
    """

    def __init__(self, database: Database[Any]) -> None:
        self._database = database
        self._max_per_second: int = database.resources.settings.smtp_max_per_second
        self._turn_lock = asyncio.Lock()

    @property
    def is_limited(self) -> bool:
        return self._max_per_second > 0

    def max_mails(self, limit: int) -> int:
        """How many mails are rendered together, at most `limit`: not more than leave within a second."""
        return min(limit, self._max_per_second) if self.is_limited else limit

    async def wait_until_allowed(self) -> None:
        """Wait until one mail may be sent."""
        async with self._turn_lock:
            await asyncio.sleep(
                max(0.0, await self._database.autocommit(lambda writer: take_turn(writer, self._max_per_second)))
            )


async def take_turn(writer: Writer[Any], max_per_second: int) -> float:
    """Take the next turn. Returns the seconds until it begins; 0 or less: it has begun."""
    return await writer.value(
        """
        update mail_rate set next_at = greatest(next_at, clock_timestamp()) + interval '1 second' / %(rate)s
        returning (extract(epoch from next_at - clock_timestamp()) - 1.0 / %(rate)s)::float8
        """,
        {"rate": max_per_second},
    )
