"""What came of mails, stored for everybody who waits by one statement."""

import asyncio
from typing import Any

from holdfast.kit import outbox
from holdfast.kit.database import Database
from holdfast.kit.outbox import Ended
from holdfast.kit.pool import RETRY
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem


class Confirmations:
    """Stores what came of mails. While the database is away they are kept, and stored when it is back."""

    def __init__(self, database: Database[Any]) -> None:
        self._database = database
        self._waiting: list[Ended] = []
        self._storing: asyncio.Task[None] | None = None

    async def add(self, ended: Ended) -> None:
        """Store what came of a mail; return when that is committed."""
        self._waiting.append(ended)
        await self._stored(ended)

    async def settled(self) -> None:
        """Return when nothing waits to be stored."""
        while self._waiting:
            await self._stored(self._waiting[-1])

    async def _stored(self, ended: Ended) -> None:
        while any(each is ended for each in self._waiting):
            if self._storing is None or self._storing.done():
                self._storing = asyncio.create_task(self._store(), name="mails: store")
            # Whoever waits may be cancelled; the others' confirmations are stored all the same.
            await asyncio.shield(self._storing)

    async def _store(self) -> None:
        """Store everything that waits now."""
        portion = list(self._waiting)
        while True:
            try:
                await self._database.read(lambda reader: outbox.end(reader, portion))
                break
            except Problem as problem:
                if problem.type is not SERVICE_UNAVAILABLE:
                    raise
                await asyncio.sleep(RETRY)
        del self._waiting[: len(portion)]
