"""Runs operations in their modes, for REST and MCP: each call by itself, in batches, or in steps."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from holdfast.kit.batch import Batcher, Locked
from holdfast.kit.caller import Caller
from holdfast.kit.command import Repeatable
from holdfast.kit.database import Database, Reader, Tx
from holdfast.kit.idempotency import Idempotency, Request
from holdfast.kit.limits import SLOT_SECONDS, Slots
from holdfast.kit.metrics import REFUSALS, counter
from holdfast.kit.modes import Batch, Batched, Call, Single, Stepwise
from holdfast.kit.operation import Operation, Operations
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.steps import KeyedSteps, Steps

READS_AT_ONCE = 4
"""The most reads of one tenant that run at once, in a service with row-level security."""

PART = 3
"""Without row-level security, one tenant's transactions hold at most 1/3 of the connections, and its reads as many."""

LANES = 5
"""The batches that wait for locked rows of one tenant hold at most 1/5 of the connections."""


WAITS = 4
"""How often a call waits at most for a row that it needs."""


class Run(Protocol):
    """Runs an operation. It raises a `Problem`. With an idempotency key, a repeated call is done only once."""

    async def __call__(self, caller: Caller, command: Any, key: str | None = None) -> Any: ...


Submit = Callable[[Caller, Any], Awaitable[Any]]
"""Runs one call, and returns its answer after the commit. It raises a `Problem`."""

_LOCKED = SERVICE_UNAVAILABLE("Somebody else is still changing the same thing.", retry_after=1)


class Keyed(NamedTuple):
    """A call with an idempotency key."""

    call: Call[Any]
    request: Request


class Answers(Protocol):
    """Answers the calls of one tenant (with None: of any), in their order. `waits` is that of `Batch`."""

    def __call__(
        self, tx: Tx[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool
    ) -> Awaitable[Sequence[Any]]: ...


class Work(Protocol):
    """Answers calls in a transaction or a read."""

    def __call__(self, tenant: int | None, calls: Sequence[Any], *, waits: bool = True) -> Awaitable[Sequence[Any]]: ...


class Runner:
    """Runs the operations of one service on its database.

    A change is answered after its commit. One tenant's work holds a part of the connections at most: what comes beyond
    that waits without one. In a service with row-level security every transaction and every batch is of one tenant.
    """

    def __init__(self, operations: Operations, database: Database[Any], idempotency: Idempotency | None = None) -> None:
        self._database = database
        self.idempotency = idempotency or Idempotency()
        connections = database.pool.max_size
        part = max(1, connections // PART)
        self._writes = Slots(1 if database.tenancy else part, SLOT_SECONDS)
        self._reads = Slots(READS_AT_ONCE if database.tenancy else part, SLOT_SECONDS)
        self._lanes = Slots(max(1, connections // LANES), SLOT_SECONDS)
        self._repeats = Slots(1)
        for each in operations:
            assert not (database.tenancy and each.public), (
                f"{each.name}: row-level security needs a caller with a tenant"
            )
        self._runs = {each.name: self._run(each) for each in operations}

    def __getitem__(self, operation: Operation) -> Run:
        return self._runs[operation.name]

    def _run(self, operation: Operation) -> Run:
        mode = operation.run
        if isinstance(mode, Stepwise):
            return self._in_steps(operation, mode)
        slots = self._reads if mode.reads else self._writes
        answers = _batch(operation, mode) if isinstance(mode, Batched) else _each(operation, mode)
        work = partial(self._transact, mode.reads, answers)
        once = partial(self._transact, False, partial(self._once, answers))
        if isinstance(mode, Batched):
            done, done_once = self._together(operation.name, slots, work), self._together(operation.name, slots, once)
        else:
            done, done_once = self._alone(slots, work), self._alone(slots, once)
        repeatable = issubclass(operation.command, Repeatable)
        dry_run = partial(self._transact, False, partial(self._try, answers), keep=False)
        tried = self._together(operation.name, self._writes, dry_run)

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            if repeatable:
                if command.dry_run:
                    return await tried(caller, Call(caller, command))
                key = key or command.idempotency_key
            if key is None:
                return await done(caller, Call(caller, command))
            request = self.idempotency.request(operation.name, caller, command, key)
            # Of two equal requests at the same time, the second waits here, without a connection.
            async with self._repeats.of(request.id):
                return await done_once(caller, Keyed(Call(caller, command), request))

        return run

    def _in_steps(self, operation: Operation, mode: Stepwise[Any, Any]) -> Run:
        idempotency = self.idempotency

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            if isinstance(command, Repeatable):
                # What is done in steps cannot be taken back: its function itself does nothing in a dry run.
                key = None if command.dry_run else key or command.idempotency_key
            if key is None:
                opened = Steps(self._database, caller.tenant_id, self._writes)
                return (await _counted(operation, mode.function(opened, caller, command))).answer
            request = idempotency.request(operation.name, caller, command, key)
            async with self._repeats.of(request.id):
                opened = KeyedSteps(self._database, caller.tenant_id, self._writes, idempotency, request)
                answer = await opened.read(lambda reader: idempotency.replay(reader, request))
                if answer is not None:
                    await opened.transact(lambda tx: tx.confirm())
                    return _raised(answer)
                return (await _counted(operation, mode.function(opened, caller, command))).answer

        return run

    def _walled(self, caller: Caller) -> int | None:
        """The tenant of a caller, in a service with row-level security; None in others."""
        return caller.tenant if self._database.tenancy else None

    async def _once(
        self, answers: Answers, tx: Tx[Any], tenant: int | None, calls: Sequence[Keyed], *, waits: bool
    ) -> Sequence[Any]:
        requests = [each.request for each in calls]
        if waits:
            await self.idempotency.lock(tx, requests)
            free = [True] * len(calls)
        else:
            free = await self.idempotency.lock_free(tx, requests)
        mine = [each for each, is_free in zip(calls, free, strict=True) if is_free]

        async def anew(places: Sequence[int]) -> Sequence[Any]:
            return await answers(tx, tenant, [mine[place].call for place in places], waits=waits)

        found = iter(await self.idempotency.once(tx, [each.request for each in mine], anew) if mine else ())
        return [
            next(found) if is_free else Locked(each.request.id, each.call.caller.tenant_id)
            for each, is_free in zip(calls, free, strict=True)
        ]

    def _alone(self, slots: Slots, work: Work) -> Submit:
        """Return a function that runs each call by itself."""

        async def submit(caller: Caller, call: Any) -> Any:
            async with slots.of(caller.tenant_id):
                [answer] = await work(self._walled(caller), [call])
            return _raised(answer)

        return submit

    def _together(self, name: str, slots: Slots, work: Work) -> Submit:
        """Return a function that runs calls in batches."""
        batchers: dict[int | None, Batcher[Any, Any]] = {}

        async def of_tenant(tenant: int, calls: Sequence[Any]) -> Sequence[Any]:
            async with slots.of(tenant):
                return await work(tenant, calls)

        async def wait(locked: Locked, calls: Sequence[Any]) -> Sequence[Any]:
            async with self._lanes.of(locked.tenant):
                answers = [*await work(None, calls)]
                for _ in range(WAITS - 1):
                    # A row that was waited for may be gone, and another one in its place that is locked again.
                    again = [place for place, each in enumerate(answers) if isinstance(each, Locked)]
                    if again:
                        waited = await work(None, [calls[place] for place in again])
                        for place, answer in zip(again, waited, strict=True):
                            answers[place] = answer
            return [_LOCKED if isinstance(each, Locked) else each for each in answers]

        def batcher(tenant: int | None) -> Batcher[Any, Any]:
            if tenant is None:
                return Batcher(name, partial(work, None, waits=False), wait)
            mine = Batcher(name, partial(of_tenant, tenant))
            mine.ended = partial(batchers.pop, tenant)
            return mine

        def submit(caller: Caller, call: Any) -> Awaitable[Any]:
            tenant = self._walled(caller)
            mine = batchers.get(tenant)
            if mine is None:
                mine = batchers[tenant] = batcher(tenant)
            return mine.submit(call)

        return submit

    async def _try(
        self, answers: Answers, tx: Tx[Any], tenant: int | None, calls: Sequence[Call[Any]], *, waits: bool
    ) -> Sequence[Any]:
        """Dry runs: each call is done as if it were alone, and rolled back before the next."""
        found: list[Any] = []
        for call in calls:
            await tx.run("savepoint dry_run")
            try:
                found += await answers(tx, tenant, [call], waits=waits)
            except Problem as problem:
                found.append(problem)
            await tx.run("rollback to savepoint dry_run")
        return found

    async def _transact(
        self,
        reads: bool,
        answers: Answers,
        tenant: int | None,
        calls: Sequence[Any],
        *,
        waits: bool = True,
        keep: bool = True,
    ) -> Sequence[Any]:
        def work(tx: Any) -> Awaitable[Sequence[Any]]:
            return answers(tx, tenant, calls, waits=waits)

        if reads:
            return await self._database.read(work, tenant)
        return await self._database.transact(work, tenant, keep=keep)


def _each(operation: Operation, mode: Single[Any, Any]) -> Answers:
    async def answers(tx: Reader[Any], tenant: int | None, calls: Sequence[Call[Any]], *, waits: bool) -> Sequence[Any]:
        return [await _counted(operation, mode.function(tx, call.caller, call.command)) for call in calls]

    return answers


def _batch(operation: Operation, mode: Batched[Any, Any]) -> Answers:
    async def answers(tx: Reader[Any], tenant: int | None, calls: Sequence[Call[Any]], *, waits: bool) -> Sequence[Any]:
        found = await mode.function(tx, Batch(tenant or 0, calls, waits))
        for each in found:
            if isinstance(each, Problem):
                counter(REFUSALS, operation.name, each.code).inc()
        return found

    return answers


async def _counted(operation: Operation, work: Awaitable[Any]) -> Any:
    """Return the answer of an operation. A problem that it raises is counted."""
    try:
        return await work
    except Problem as problem:
        counter(REFUSALS, operation.name, problem.code).inc()
        raise


def _raised(answer: Any) -> Any:
    """Return the answer, or raise it if it is a `Problem`."""
    if isinstance(answer, Problem):
        raise answer
    return answer
