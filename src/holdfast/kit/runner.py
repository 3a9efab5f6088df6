"""How operations run: alone in a transaction, together with everyone else who waits, or in steps of their own."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

from holdfast.kit import idempotency
from holdfast.kit.batch import Batcher
from holdfast.kit.database import Database, Tx
from holdfast.kit.operation import Call, Caller, Operation, Operations
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem

READS_AT_ONCE = 4
WAITING = 200
"""Of each tenant: reads that run at once, and pieces of work that may wait."""

Run = Callable[[Caller, Any], Awaitable[Any]]
RunOnce = Callable[[Caller, Any, str], Awaitable[Any]]


class Keyed(NamedTuple):
    """A call that may come again."""

    call: Call[Any]
    request: idempotency.Request


class Runner:
    """Runs the operations of one service on its database, for every door.

    Everything but a read answers after its commit. A transaction belongs to one tenant; where row-level security guards
    the tenants, so does a batch, and what waits for a tenant's turn waits here, not with the connections of others.
    """

    def __init__(self, operations: Operations, database: Database[Any]) -> None:
        self._database = database
        self._writes = Turns(1)
        self._reads = Turns(READS_AT_ONCE)
        self._repeats = Turns(1)
        self._runs = {each.name: self._run(each) for each in operations}

    def __getitem__(self, operation: Operation) -> Run:
        """The function `(caller, command) -> answer` of an operation; it raises a `Problem`."""
        return self._runs[operation.name]

    def once(self, operation: Operation) -> RunOnce:
        """The function `(caller, command, key) -> answer` of an operation.

        A call that comes again with its key changes nothing, and gets the bytes of the first answer as `Raw`. Calls
        with a key share their runs with one another: those without pay nothing for them.
        """

        async def run(tx: Tx[Any], calls: Sequence[Keyed]) -> Sequence[Any]:
            async def anew(places: Sequence[int]) -> Sequence[Any]:
                fresh = [calls[place].call for place in places]
                if operation.many:
                    return await operation.run(tx, fresh)
                return [await operation.run(tx, call.caller, call.command) for call in fresh]

            return await idempotency.once(tx, [each.request for each in calls], anew)

        async def alone(tenant: int | None, call: Keyed) -> Any:
            [answer] = await self._transact(operation, lambda tx: run(tx, [call]), tenant)
            return _given(answer)

        async def in_steps(_: int | None, call: Keyed) -> Any:
            answer = await self._database.read(lambda tx: idempotency.replay(tx, call.request))
            if answer is None:
                return await operation.run(Once(self._database, call.request), call.call.caller, call.call.command)
            return _given(answer)

        submit = self._lanes(operation, run) if operation.many else in_steps if operation.transacts_itself else alone

        async def once(caller: Caller, command: Any, key: str) -> Any:
            request = idempotency.request(operation, caller, command, key)
            # Whoever sends the same twice at once waits here, not with a connection.
            async with self._repeats.of(request.id):
                return await submit(caller.tenant_id, Keyed(Call(caller, command), request))

        return once

    def _run(self, operation: Operation) -> Run:
        if operation.many:
            return self._together(operation)
        if operation.transacts_itself:
            # Its transactions would not enter the tenant, and so see everybody's rows.
            assert self._database.tenancy is None, f"{operation.name}: where row-level security guards, take a tx"
            return partial(operation.run, self._database)
        return self._alone(operation)

    def _together(self, operation: Operation) -> Run:
        submit = self._lanes(operation, operation.run)
        return lambda caller, command: submit(caller.tenant_id, Call(caller, command))

    def _lanes(
        self, operation: Operation, run: Callable[[Tx[Any], Sequence[Any]], Awaitable[Sequence[Any]]]
    ) -> Callable[[int | None, Any], Awaitable[Any]]:
        """A function `(tenant, call) -> answer` that runs calls together with everyone else's who waits."""
        lanes: dict[int | None, Batcher[Any, Any]] = {}

        def lane(tenant: int | None) -> Batcher[Any, Any]:
            async def run_all(calls: Sequence[Any]) -> Sequence[Any]:
                return await self._transact(operation, lambda tx: run(tx, calls), tenant)

            return Batcher(operation.name, run_all)

        async def submit(tenant: int | None, call: Any) -> Any:
            tenant = tenant if self._database.tenancy else None
            mine = lanes.get(tenant) or lanes.setdefault(tenant, lane(tenant))
            try:
                return await mine.submit(call)
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


class Once:
    """The database, for an operation that makes its transactions itself: the one that concludes it is made once."""

    def __init__(self, database: Database[Any], request: idempotency.Request) -> None:
        self.settings = database.settings
        self.read, self.transact = database.read, database.transact
        self._request = request

    async def conclude(self, work: Callable[[Tx[Any]], Awaitable[Any]]) -> Any:
        """The last transaction, with its answer, or the bytes of the answer it had before."""

        async def once(tx: Tx[Any]) -> Any:
            async def anew(_: Sequence[int]) -> Sequence[Any]:
                return [await work(tx)]

            [answer] = await idempotency.once(tx, [self._request], anew)
            return answer

        return _given(await self.transact(once))


def _given(answer: Any) -> Any:
    """An answer; raised, if it is a `Problem`."""
    if isinstance(answer, Problem):
        raise answer
    return answer


class Turns:
    """Lets so many pieces of the same one's work run at once, in order of arrival. Others wait, up to a number."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._turns: dict[Hashable, tuple[asyncio.Semaphore, int]] = {}

    @contextlib.asynccontextmanager
    async def of(self, whose: Hashable) -> AsyncGenerator[None]:
        """A turn. Raises `service_unavailable` when too much waits already."""
        semaphore, present = self._turns.get(whose) or (asyncio.Semaphore(self._at_once), 0)
        if present >= self._at_once + WAITING:
            raise SERVICE_UNAVAILABLE("Too much of your own work waits already.", retry_after=1)
        self._turns[whose] = semaphore, present + 1
        try:
            async with semaphore:
                yield
        finally:
            semaphore, present = self._turns.pop(whose)
            if present > 1:
                self._turns[whose] = semaphore, present - 1
