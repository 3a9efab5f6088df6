"""Stores the results of attempts, for all waiting callers in one statement."""

import asyncio
from typing import Any

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.mail import outbox
from holdfast.kit.mail.outbox import AttemptResult
from holdfast.kit.postgres.connection_pool import RETRY_SECONDS
from holdfast.kit.postgres.database import Database


class ResultWriter:
    """Stores results of attempts. While the database is unreachable, it keeps them, and stores them when it is back."""

    def __init__(self, database: Database[Any]) -> None:
        self._database = database
        self._waiting: list[AttemptResult] = []
        self._storing: asyncio.Task[None] | None = None

    async def add(self, result: AttemptResult) -> None:
        """Store the result of an attempt. Returns after the commit."""
        self._waiting.append(result)
        await self._wait_until_stored(result)

    async def flushed(self) -> None:
        """Return when all results are stored."""
        while self._waiting:
            await self._wait_until_stored(self._waiting[-1])

    async def _wait_until_stored(self, result: AttemptResult) -> None:
        while any(waiting is result for waiting in self._waiting):
            if self._storing is None or self._storing.done():
                self._storing = asyncio.create_task(self._store(), name="mails: store")
            # A waiting caller may be cancelled; the results of the others are still stored.
            await asyncio.shield(self._storing)

    async def _store(self) -> None:
        """Store all waiting results."""
        batch = list(self._waiting)
        while True:
            try:
                await self._database.read(lambda reader: outbox.store_results(reader, batch))
                break
            except Problem as problem:
                if problem.type is not SERVICE_UNAVAILABLE:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
        del self._waiting[: len(batch)]
