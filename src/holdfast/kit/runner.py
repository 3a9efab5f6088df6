"""How operations run: alone in a transaction, or together with everyone else who waits."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from holdfast.kit.batch import Batcher
from holdfast.kit.database import Database, Tx
from holdfast.kit.operation import Call, Caller, Operation, Operations
from holdfast.kit.problems import SERVICE_UNAVAILABLE

READS_AT_ONCE = 4
WAITING = 200
"""Of each tenant: reads that run at once, and pieces of work that may wait."""

Run = Callable[[Caller, Any], Awaitable[Any]]


class Runner:
    """Runs the operations of one service on its database, for every door.

    Everything but a read answers after its commit. A transaction belongs to one tenant; where row-level security guards
    the tenants, so does a batch, and what waits for a tenant's turn waits here, not with the connections of others.
    """

    def __init__(self, operations: Operations, database: Database[Any]) -> None:
        self._database = database
        self._writes = Turns(1)
        self._reads = Turns(READS_AT_ONCE)
        self._runs = {each.name: self._together(each) if each.many else self._alone(each) for each in operations}

    def __getitem__(self, operation: Operation) -> Run:
        """The function `(caller, command) -> answer` of an operation; it raises a `Problem`."""
        return self._runs[operation.name]

    def _together(self, operation: Operation) -> Run:
        lanes: dict[int | None, Batcher[Call[Any], Any]] = {}

        def lane(tenant: int | None) -> Batcher[Call[Any], Any]:
            async def run(calls: Sequence[Call[Any]]) -> Sequence[Any]:
                return await self._transact(operation, lambda tx: operation.run(tx, calls), tenant)

            return Batcher(operation.name, run)

        async def submit(caller: Caller, command: Any) -> Any:
            tenant = caller.tenant_id if self._database.tenancy else None
            mine = lanes.get(tenant) or lanes.setdefault(tenant, lane(tenant))
            try:
                return await mine.submit(Call(caller, command))
            finally:
                if mine.idle and lanes.get(tenant) is mine:
                    del lanes[tenant]

        return submit

    def _alone(self, operation: Operation) -> Run:
        return lambda caller, command: self._transact(
            operation, lambda tx: operation.run(tx, caller, command), caller.tenant_id
        )

    async def _transact(
        self, operation: Operation, work: Callable[[Tx[Any]], Awaitable[Any]], tenant: int | None
    ) -> Any:
        run = self._database.read if operation.reads else self._database.transact
        if self._database.tenancy is None or tenant is None:
            return await run(work)
        async with (self._reads if operation.reads else self._writes).of(tenant):
            return await run(work, tenant)


class Turns:
    """Lets so many pieces of each tenant's work run at once, in order of arrival. Others wait, up to a number."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._turns: dict[int, tuple[asyncio.Semaphore, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, tenant: int) -> AsyncGenerator[None]:
        """A turn. Raises `service_unavailable` when too much waits already."""
        semaphore, present = self._turns.get(tenant) or (asyncio.Semaphore(self._at_once), 0)
        if present >= self._at_once + WAITING:
            raise SERVICE_UNAVAILABLE("Too much of your own work waits already.", retry_after=1)
        self._turns[tenant] = semaphore, present + 1
        try:
            async with semaphore:
                yield
        finally:
            semaphore, present = self._turns.pop(tenant)
            if present > 1:
                self._turns[tenant] = semaphore, present - 1
