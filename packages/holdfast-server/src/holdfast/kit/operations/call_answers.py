"""How the calls of an operation are answered in one transaction: singly or together, and with what is stored beside.

`Runner` puts these around each other. The innermost one calls the function of the operation. Those around it store what
agents did, find and store answers of idempotency keys, or undo each call.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from holdfast.kit.contract.problems import Problem
from holdfast.kit.environment.metrics import REFUSALS, counter
from holdfast.kit.operations.idempotency import Idempotency, RepeatableRequest
from holdfast.kit.operations.operation import AgentLog, Batch, Batched, Call, Operation, Single
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.group_commit import LockedRow

T = TypeVar("T")


class KeyedCall(NamedTuple):
    """A call with an idempotency key."""

    call: Call[Any]
    request: RepeatableRequest


class CallAnswerer(ABC):
    """Answers calls of an operation."""

    @abstractmethod
    async def answer(self, tx: Tx[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool) -> Sequence[Any]:
        """The answers to calls of one tenant (with None: of any tenants), in their order. `waits` is as in `Batch`."""

    def can_commit_early(self, calls: Sequence[Any]) -> bool:
        """Whether nothing follows the last statement of the operation, so that it may commit."""
        return False


class SingleAnswerer(CallAnswerer):
    """Calls the function of an operation once for each call."""

    def __init__(self, operation: Operation, mode: Single[Any, Any]) -> None:
        self._operation = operation
        self._function: Callable[..., Awaitable[Any]] = mode.function

    async def answer(self, tx: Reader[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool) -> Sequence[Any]:
        return [await count_problem(self._operation, self._function(tx, call.caller, call.command)) for call in calls]

    def can_commit_early(self, calls: Sequence[Any]) -> bool:
        return True


class BatchAnswerer(CallAnswerer):
    """Calls the function of an operation once for all calls."""

    def __init__(self, operation: Operation, mode: Batched[Any, Any]) -> None:
        self._operation = operation
        self._function: Callable[..., Awaitable[Sequence[Any]]] = mode.function

    async def answer(self, tx: Reader[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool) -> Sequence[Any]:
        results = await self._function(tx, Batch(tenant or 0, calls, waits))
        for result in results:
            if isinstance(result, Problem):
                counter(REFUSALS, self._operation.name, result.code).inc()
        return results

    def can_commit_early(self, calls: Sequence[Any]) -> bool:
        return True


class LoggedAnswerer(CallAnswerer):
    """Stores, in the same transaction, what agents changed by the calls."""

    def __init__(self, operation: Operation, agent_log: AgentLog, answerer: CallAnswerer) -> None:
        self._operation = operation
        self._agent_log = agent_log
        self._answerer = answerer

    async def answer(self, tx: Tx[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool) -> Sequence[Any]:
        before = [await self._version(tx, call) if call.caller.is_agent else None for call in calls]
        answers = await self._answerer.answer(tx, tenant, calls, waits=waits)
        answered_calls = [
            (call, answer)
            for call, answer, version in zip(calls, answers, before, strict=True)
            if call.caller.is_agent
            and not isinstance(answer, Problem | LockedRow)
            and (version is None or version != await self._version(tx, call))
        ]
        if answered_calls:
            await self._agent_log.store(tx, self._operation, answered_calls)
        return answers

    def can_commit_early(self, calls: Sequence[Any]) -> bool:
        """Whether no agent made any of the calls: then nothing is stored beside."""
        return not any(call.caller.is_agent for call in calls)

    async def _version(self, tx: Tx[Any], call: Call[Any]) -> Any:
        return await self._agent_log.version(tx, self._operation, call.command)


class KeyedAnswerer(CallAnswerer):
    """Answers calls with idempotency keys (`KeyedCall`): each once, and stores its answer in the same transaction."""

    def __init__(self, idempotency: Idempotency, answerer: CallAnswerer) -> None:
        self._idempotency = idempotency
        self._answerer = answerer

    async def answer(self, tx: Tx[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool) -> Sequence[Any]:
        if waits:
            await self._idempotency.lock(tx, [call.request for call in calls])
            have_lock = [True] * len(calls)
        else:
            have_lock = await self._idempotency.lock_skip_locked(tx, [call.request for call in calls])
        calls_with_lock = [call for call, has_lock in zip(calls, have_lock, strict=True) if has_lock]

        async def answer_new(indexes: Sequence[int]) -> Sequence[Any]:
            return await self._answerer.answer(
                tx, tenant, [calls_with_lock[index].call for index in indexes], waits=waits
            )

        requests = [call.request for call in calls_with_lock]
        new_answers = iter(await self._idempotency.answer_once(tx, requests, answer_new) if requests else ())
        return [
            next(new_answers) if has_lock else LockedRow(call.request.id, call.call.caller.tenant_id)
            for call, has_lock in zip(calls, have_lock, strict=True)
        ]


class DryRunAnswerer(CallAnswerer):
    """Answers each call as if it were the only one, and rolls it back before the next."""

    def __init__(self, answerer: CallAnswerer) -> None:
        self._answerer = answerer

    async def answer(self, tx: Tx[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool) -> Sequence[Any]:
        results: list[Any] = []
        for call in calls:
            await tx.run("savepoint dry_run")
            try:
                results += await self._answerer.answer(tx, tenant, [call], waits=waits)
            except Problem as problem:
                results.append(problem)
            await tx.run("rollback to savepoint dry_run")
        return results


class LoggedWork:
    """Runs the last work of steps, and stores in the same transaction what an agent changed by it."""

    def __init__(self, operation: Operation, agent_log: AgentLog, call: Call[Any]) -> None:
        self._operation = operation
        self._agent_log = agent_log
        self._call = call

    async def __call__(self, tx: Tx[Any], work: Callable[[Tx[Any]], Awaitable[T]]) -> T:
        before = await self._version(tx)
        answer = await work(tx)
        if before is None or before != await self._version(tx):
            await self._agent_log.store(tx, self._operation, [(self._call, answer)])
        return answer

    async def _version(self, tx: Tx[Any]) -> Any:
        return await self._agent_log.version(tx, self._operation, self._call.command)


class CallTransaction:
    """Answers calls in one transaction, or without one if the operation only reads.

    reads         whether the operation only reads
    is_dry_run    whether the transaction is rolled back
    """

    def __init__(
        self, database: Database[Any], answerer: CallAnswerer, *, reads: bool = False, is_dry_run: bool = False
    ) -> None:
        self._database = database
        self._answerer = answerer
        self._reads = reads
        self._is_dry_run = is_dry_run

    async def __call__(self, tenant: int | None, calls: Sequence[Any], *, waits: bool = True) -> Sequence[Any]:
        def work(tx: Any) -> Awaitable[Sequence[Any]]:
            return self._answerer.answer(tx, tenant, calls, waits=waits)

        if self._reads:
            return await self._database.read(work, tenant)
        return await self._database.transact(
            work, tenant, is_dry_run=self._is_dry_run, can_commit_early=self._answerer.can_commit_early(calls)
        )


async def count_problem(operation: Operation, answering: Awaitable[Any]) -> Any:
    """The answer of an operation. Counts a problem that it raises."""
    try:
        return await answering
    except Problem as problem:
        counter(REFUSALS, operation.name, problem.code).inc()
        raise
