"""Requests that race with the end of a credential: a session, a link or a key."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

from holdfast.events.resources import Tx
from tests.helpers.events_service import Service
from tests.helpers.locked_rows import wait_for_lock_waiters

T = TypeVar("T")


class Ending:
    """A transaction that ends something, and is committed when the block ends."""

    def __init__(self, service: Service, tx: Tx) -> None:
        self.tx = tx
        self._service = service

    async def meanwhile(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Begin some work, which waits for the transaction."""
        await self.tx.value("select true")  # what was run before has taken its locks
        begun = asyncio.ensure_future(work)
        await wait_for_lock_waiters(self._service.run_sql)
        assert not begun.done(), begun.result()
        return begun


@contextlib.asynccontextmanager
async def ending_transaction(service: Service) -> AsyncGenerator[Ending]:
    async with service.database.transaction() as tx:
        yield Ending(service, tx)
