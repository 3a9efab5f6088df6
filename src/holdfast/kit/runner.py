"""Runs operations in their modes, for REST and MCP: each call by itself, in batches, or in steps."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from holdfast.kit.batch import Batcher
from holdfast.kit.caller import Caller
from holdfast.kit.command import Repeatable
from holdfast.kit.database import Database, Reader, Tx
from holdfast.kit.idempotency import Idempotency, Request
from holdfast.kit.limits import Slots
from holdfast.kit.metrics import REFUSALS, counter
from holdfast.kit.modes import Batch, Batched, Call, Single, Stepwise
from holdfast.kit.operation import Operation, Operations
from holdfast.kit.problems import Problem
from holdfast.kit.steps import KeyedSteps, Steps

READS_AT_ONCE = 4
"""The most reads of one tenant that run at once, in a service with row-level security."""


class Run(Protocol):
    """Runs an operation. It raises a `Problem`. With an idempotency key, a repeated call is done only once."""

    async def __call__(self, caller: Caller, command: Any, key: str | None = None) -> Any: ...


class Keyed(NamedTuple):
    """A call with an idempotency key."""

    call: Call[Any]
    request: Request


Answers = Callable[[Tx[Any], int | None, Sequence[Call[Any]]], Awaitable[Sequence[Any]]]
"""Answers the calls of one tenant (with None: of any), in their order."""


class Runner:
    """Runs the operations of one service on its database.

    A change is answered after its commit. In a service with row-level security every transaction and every batch is of
    one tenant, and calls that wait for other work of their tenant hold no connection while they wait.
    """

    def __init__(self, operations: Operations, database: Database[Any], idempotency: Idempotency | None = None) -> None:
        self._database = database
        self.idempotency = idempotency or Idempotency()
        self._writes = Slots(1)
        self._reads = Slots(READS_AT_ONCE)
        self._repeats = Slots(1)
        for each in operations:
            assert not (database.tenancy and each.public), (
                f"{each.name}: row-level security needs a caller with a tenant"
            )
            assert not (isinstance(each.run, Stepwise) and issubclass(each.command, Repeatable)), (
                f"{each.name}: what is done in steps cannot be taken back, so it takes no dry_run"
            )
        self._runs = {each.name: self._run(each) for each in operations}

    def __getitem__(self, operation: Operation) -> Run:
        return self._runs[operation.name]

    def _run(self, operation: Operation) -> Run:
        mode = operation.run
        if isinstance(mode, Stepwise):
            return self._in_steps(operation, mode)
        answers = _batch(operation, mode) if isinstance(mode, Batched) else _each(operation, mode)
        work = partial(self._transact, mode.reads, answers)
        once = partial(self._transact, False, partial(self._once, answers))
        if isinstance(mode, Batched):
            work, once = self._together(operation.name, work), self._together(operation.name, once)
        else:
            work, once = _alone(work), _alone(once)
        repeatable = issubclass(operation.command, Repeatable)
        tried = self._together(operation.name, partial(self._transact, False, partial(self._try, answers), keep=False))

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            tenant = caller.tenant if self._database.tenancy else None
            if repeatable:
                if command.dry_run:
                    return await tried(tenant, Call(caller, command))
                key = key or command.idempotency_key
            if key is None:
                return await work(tenant, Call(caller, command))
            request = self.idempotency.request(operation.name, caller, command, key)
            # Of two equal requests at the same time, the second waits here, without a connection.
            async with self._repeats.of(request.id):
                return await once(tenant, Keyed(Call(caller, command), request))

        return run

    def _in_steps(self, operation: Operation, mode: Stepwise[Any, Any]) -> Run:
        idempotency = self.idempotency

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            tenant = caller.tenant if self._database.tenancy else None
            if key is None:
                opened = Steps(self._database, tenant, self._writes)
                return (await _counted(operation, mode.function(opened, caller, command))).answer
            request = idempotency.request(operation.name, caller, command, key)
            async with self._repeats.of(request.id):
                opened = KeyedSteps(self._database, tenant, self._writes, idempotency, request)
                answer = await opened.read(lambda reader: idempotency.replay(reader, request))
                if answer is not None:
                    return _raised(answer)
                return (await _counted(operation, mode.function(opened, caller, command))).answer

        return run

    async def _once(self, answers: Answers, tx: Tx[Any], tenant: int | None, calls: Sequence[Keyed]) -> Sequence[Any]:
        async def anew(places: Sequence[int]) -> Sequence[Any]:
            return await answers(tx, tenant, [calls[place].call for place in places])

        return await self.idempotency.once(tx, [each.request for each in calls], anew)

    def _together(
        self, name: str, work: Callable[[int | None, Sequence[Any]], Awaitable[Sequence[Any]]]
    ) -> Callable[[int | None, Any], Awaitable[Any]]:
        """Return a function `(tenant, call) -> answer` that runs calls in batches."""
        batchers: dict[int | None, Batcher[Any, Any]] = {}

        async def submit(tenant: int | None, call: Any) -> Any:
            mine = batchers.get(tenant)
            if mine is None:
                mine = batchers[tenant] = Batcher(name, partial(work, tenant))
            try:
                return await mine.submit(call)
            finally:
                if mine.idle and batchers.get(tenant) is mine:
                    del batchers[tenant]

        return submit

    async def _try(
        self, answers: Answers, tx: Tx[Any], tenant: int | None, calls: Sequence[Call[Any]]
    ) -> Sequence[Any]:
        """Dry runs: each call is done as if it were alone, and rolled back before the next."""
        found: list[Any] = []
        for call in calls:
            await tx.run("savepoint dry_run")
            try:
                found += await answers(tx, tenant, [call])
            except Problem as problem:
                found.append(problem)
            await tx.run("rollback to savepoint dry_run")
        return found

    async def _transact(
        self, reads: bool, answers: Any, tenant: int | None, calls: Sequence[Any], *, keep: bool = True
    ) -> Sequence[Any]:
        def work(tx: Any) -> Awaitable[Sequence[Any]]:
            return answers(tx, tenant, calls)

        if reads:
            return await self._of(self._reads, tenant, lambda: self._database.read(work, tenant))
        return await self._of(self._writes, tenant, lambda: self._database.transact(work, tenant, keep=keep))

    async def _of(self, slots: Slots, tenant: int | None, work: Callable[[], Awaitable[Any]]) -> Any:
        if tenant is None:
            return await work()
        async with slots.of(tenant):
            return await work()


def _each(operation: Operation, mode: Single[Any, Any]) -> Answers:
    async def answers(tx: Reader[Any], _: int | None, calls: Sequence[Call[Any]]) -> Sequence[Any]:
        return [await _counted(operation, mode.function(tx, call.caller, call.command)) for call in calls]

    return answers


def _batch(operation: Operation, mode: Batched[Any, Any]) -> Answers:
    async def answers(tx: Reader[Any], tenant: int | None, calls: Sequence[Call[Any]]) -> Sequence[Any]:
        found = await mode.function(tx, Batch(tenant or 0, calls))
        for each in found:
            if isinstance(each, Problem):
                counter(REFUSALS, operation.name, each.code).inc()
        return found

    return answers


def _alone(work: Callable[[int | None, Sequence[Any]], Awaitable[Sequence[Any]]]) -> Callable[..., Awaitable[Any]]:
    async def run(tenant: int | None, call: Any) -> Any:
        [answer] = await work(tenant, [call])
        return _raised(answer)

    return run


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
