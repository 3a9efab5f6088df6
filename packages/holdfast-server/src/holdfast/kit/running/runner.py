"""Runs operations in their modes, for REST and MCP: single calls, steps, or batches that answer many calls together."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Raw

from holdfast.kit.contract.bounds import Bound, bound_without_strangers
from holdfast.kit.contract.caller import STRANGERS, Caller, Owner
from holdfast.kit.contract.command import Repeatable
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.environment.metrics import REFUSALS, counter
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.group_commit import CompleteAnswers, LockedRow
from holdfast.kit.running.admission import Admission
from holdfast.kit.running.batches import OperationBatches, Submit, TransactCalls
from holdfast.kit.running.idempotency import Idempotency, RepeatableRequest
from holdfast.kit.running.operation import AgentLog, ApprovalGate, Claim, Operation, Operations
from holdfast.kit.running.run_modes import AnyMode, Batch, Batched, Call, Stepwise
from holdfast.kit.running.slots import MAX_WAITING, MAX_WAITING_TOGETHER, SLOT_TIMEOUT_SECONDS, Slots
from holdfast.kit.running.steps import KeyedSteps, LogWork, Steps

MAX_CONCURRENT_READS = 4
"""Concurrent reads of one tenant, in a service with row-level security."""

TENANT_SHARE_DIVISOR = 3
"""Without row-level security, one tenant's transactions hold at most 1/3 of the connections; so do its reads."""

LOCK_WAIT_SHARE_DIVISOR = 5
"""Batches that wait for locked rows of one tenant hold at most 1/5 of the connections."""


TRANSACTIONS = Bound(
    name="Transactions of operations",
    service="both",
    total=f"`DATABASE_POOL_SIZE`; strangers 1/{TENANT_SHARE_DIVISOR}, and {MAX_WAITING_TOGETHER} wait",
    tenant=f"events: 1/{TENANT_SHARE_DIVISOR} of them; inventory: 1; {MAX_WAITING} wait",
    address=f"one less than strangers together, at least 1, in turns; {MAX_WAITING} wait, also of a /48",
    reserved="as many again for strangers who sign in, register or stop mails, and for each partner",
    stranger="Each other address waits one turn.",
)
CONCURRENT_READS = Bound(
    name="Reads of operations",
    service="both",
    total="as many as transactions",
    tenant=f"as many as transactions; inventory: {MAX_CONCURRENT_READS}",
    address="as many as transactions",
    reserved="-",
    stranger="Each other address waits one turn.",
)
LOCK_WAITS = Bound(
    name="Batches that wait for a locked row",
    service="both",
    total="`DATABASE_POOL_SIZE`",
    tenant=f"1/{LOCK_WAIT_SHARE_DIVISOR} of these; {MAX_WAITING} wait",
    address="the share of its organizer",
    reserved="-",
    stranger="Nothing: strangers hold no lock while they wait.",
)
REPEATS = bound_without_strangers(
    "Requests with one Idempotency-Key", "both", f"1 for each key of a caller; {MAX_WAITING} wait", "any number of keys"
)

T = TypeVar("T")


class Run(Protocol):
    """Runs an operation. Raises a `Problem`. With an idempotency key, a repeated call runs only once."""

    def __call__(self, caller: Caller, command: Any, key: str | None = None) -> Coroutine[Any, Any, Any]: ...


class KeyedCall(NamedTuple):
    """A call with an idempotency key."""

    call: Call[Any]
    request: RepeatableRequest


class AnswerCalls(Protocol):
    """Answers the calls of one tenant (with None: of any tenants), in their order. `waits` is as in `Batch`."""

    def __call__(
        self, tx: Tx[Any], tenant: int | None, calls: Sequence[Any], *, waits: bool
    ) -> Awaitable[Sequence[Any]]: ...


class Runner:
    """Runs the operations of one service on its database.

    agent_log    stores what agents did; None: nothing does
    approvals    stores the calls of credentials that ask a person first; None: no call waits for a person

    A change is answered after its commit. One tenant's work holds at most a part of the connections; further work waits
    without a connection. In a service with row-level security, every transaction and every batch belongs to one tenant.
    """

    def __init__(
        self,
        operations: Operations,
        database: Database[Any],
        idempotency: Idempotency | None = None,
        agent_log: AgentLog | None = None,
        approvals: ApprovalGate | None = None,
    ) -> None:
        self._database = database
        self._agent_log = agent_log
        self._approvals = approvals
        self.idempotency = idempotency or Idempotency()
        connections = database.pool.max_size
        part = max(1, connections // TENANT_SHARE_DIVISOR)
        self.admission = Admission()
        slots = partial(Slots, timeout=SLOT_TIMEOUT_SECONDS, retry_after=self.admission.retry_after)
        self._writes = slots(TRANSACTIONS, 1 if database.tenancy else part)
        self._reads = slots(CONCURRENT_READS, MAX_CONCURRENT_READS if database.tenancy else part)
        self._lock_waits = slots(LOCK_WAITS, max(1, connections // LOCK_WAIT_SHARE_DIVISOR))
        self._repeats = Slots(REPEATS, 1)
        for operation in operations:
            assert not (database.tenancy and operation.public), (
                f"{operation.name}: row-level security needs a caller with a tenant"
            )
        self._operations = {operation.name: operation for operation in operations}
        self._runs: dict[str, Run] = {}

    def __getitem__(self, operation: Operation) -> Run:
        name = operation.name
        if name not in self._runs:
            self._runs[name] = self._asking_first(self._operations[name])
        return self._runs[name]

    def _asking_first(self, operation: Operation) -> Run:
        """The run of an operation. A credential that asks a person first only stores what it wants to do."""
        run, approvals = self._run(operation), self._approvals
        if approvals is None or operation.mode.reads or not approvals.covers(operation):
            return run

        async def ask(caller: Caller, command: Any, key: str | None = None) -> Any:
            if isinstance(command, Repeatable):
                key = key or command.idempotency_key
            if not caller.asks_first or (isinstance(command, Repeatable) and command.dry_run):
                return await run(caller, command, key)
            if key and (answer := await self._find_answer(operation, caller, command, key)) is not None:
                return await self._completed(operation, answer)
            outcome = await self.transact(
                caller, lambda tx: approvals.ask(tx, operation, caller, command, key), operation.lane
            )
            if isinstance(outcome, Problem):
                raise outcome
            return await self._completed(operation, await self._find_answer(operation, caller, command, outcome))

        return ask

    async def _find_answer(self, operation: Operation, caller: Caller, command: Any, key: str) -> Raw | Problem | None:
        request = self.idempotency.request(operation.name, caller, command, key)
        return await self.read(caller, lambda reader: self.idempotency.replay(reader, request))

    async def _completed(self, operation: Operation, answer: Raw | Problem | None) -> Any:
        """A stored answer as its first caller got it. Raises it if it is a `Problem`."""
        mode = operation.mode
        if answer is not None and isinstance(mode, Batched) and mode.complete:
            [answer] = await mode.complete(self._database, True, [answer])
        return _raise_problem(None if operation.answer is None and not isinstance(answer, Problem) else answer)

    async def run_approved(self, operation: Operation, caller: Caller, command: Any, key: str, claim: Claim) -> Any:
        """Run a call that a person has approved, and store its answer under its idempotency key.

        `claim` runs first in the transaction that stores what the call does, so that no request is done twice.
        """
        operation = self._operations[operation.name]
        mode = operation.mode
        request = self.idempotency.request(operation.name, caller, command, key)
        owner = lane_owner(operation.lane, caller)
        if isinstance(mode, Stepwise):
            opened = KeyedSteps(
                self._database,
                caller.tenant_id,
                self._writes,
                owner,
                self.idempotency,
                request,
                self._log_of(operation, caller, command),
                claim,
            )
            return (await _count_problem(operation, mode.function(opened, caller, command))).answer
        answer_calls, _ = self._answering(operation, mode)
        call = KeyedCall(Call(caller, command), request)
        tenant = self._isolated_tenant(caller)

        async def work(tx: Tx[Any]) -> Any:
            await claim(tx)
            [answer] = await self._answer_keyed(answer_calls, tx, tenant, [call], waits=True)
            if isinstance(answer, LockedRow):
                raise SERVICE_UNAVAILABLE("Another caller is still changing the same thing.", retry_after=1)
            return _raise_problem(answer)

        async with self._writes.of(owner):
            with self.admission.work():
                return await self._database.transact(work, tenant)

    def get_of(self, operation: Operation) -> Operation | None:
        """The operation that reads what this one changes: the GET of the same path, with the same answer."""
        return next(
            (
                other
                for other in self._operations.values()
                if (other.method, other.path, other.answer) == ("GET", operation.path, operation.answer)
            ),
            None,
        )

    async def read(self, caller: Caller, work: Callable[[Reader[Any]], Awaitable[T]]) -> T:
        """Run a read that is no operation, in the share of its caller."""
        async with self._reads.of(caller.owner):
            with self.admission.work():
                return await self._database.read(work, self._isolated_tenant(caller))

    async def transact(self, caller: Caller, work: Callable[[Tx[Any]], Awaitable[T]], lane: str = "") -> T:
        """Run a transaction that is no operation, in the share of its caller in a lane."""
        async with self._writes.of(lane_owner(lane, caller)):
            with self.admission.work():
                return await self._database.transact(work, self._isolated_tenant(caller))

    def _run(self, operation: Operation) -> Run:
        mode = operation.mode
        if isinstance(mode, Stepwise):
            return self._in_steps(operation, mode)
        slots = self._reads if mode.reads else self._writes
        answer_calls, can_commit_early = self._answering(operation, mode)
        answer_keyed = partial(self._answer_keyed, answer_calls)
        transact: TransactCalls = partial(self._transact, mode.reads, answer_calls, can_commit_early=can_commit_early)
        transact_keyed: TransactCalls = partial(self._transact, False, answer_keyed)
        if isinstance(mode, Batched):
            complete, complete_keyed = (
                mode.complete and partial(mode.complete, self._database, have_keys) for have_keys in (False, True)
            )
            submit = self._submit_together(operation.name, slots, transact, complete)
            submit_keyed = self._submit_together(operation.name, slots, transact_keyed, complete_keyed)
        else:
            submit = partial(self._submit_alone, operation.lane, slots, transact)
            submit_keyed = partial(self._submit_alone, operation.lane, slots, transact_keyed)
        submit_dry_run: Submit | None = None
        if issubclass(operation.command, Repeatable):
            dry_run = partial(self._transact, False, partial(self._dry_run, answer_calls), commit=False)
            submit_dry_run = self._submit_together(operation.name, self._writes, dry_run)

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            if submit_dry_run:
                if command.dry_run:
                    return await submit_dry_run(caller, Call(caller, command))
                key = key or command.idempotency_key
            if key is None:
                return await submit(caller, Call(caller, command))
            request = self.idempotency.request(operation.name, caller, command, key)
            # Of two equal concurrent requests, the second one waits here, without a connection.
            async with self._repeats.of((request.id,)):
                return await submit_keyed(caller, KeyedCall(Call(caller, command), request))

        return run

    def _answering(self, operation: Operation, mode: AnyMode) -> tuple[AnswerCalls, Callable[[Sequence[Any]], bool]]:
        """The function that answers the calls, and the predicate that tells when its last statement may commit."""
        answer_mode = _answer_batch if isinstance(mode, Batched) else _answer_singly
        answer_calls: AnswerCalls = partial(answer_mode, operation, mode.function)
        if self._agent_log and not mode.reads and self._agent_log.covers(operation):
            return partial(_answer_and_log, operation, self._agent_log, answer_calls), _is_without_agents
        return answer_calls, _always

    def _log_of(self, operation: Operation, caller: Caller, command: Any) -> LogWork | None:
        """What runs the last work of steps and stores what an agent did by it; None: nothing is stored."""
        agent_log = self._agent_log
        if agent_log is None or not agent_log.covers(operation) or not caller.is_agent:
            return None
        return partial(_work_and_log, operation, agent_log, Call(caller, command))

    def _in_steps(self, operation: Operation, mode: Stepwise[Any, Any]) -> Run:
        idempotency = self.idempotency
        log_of = partial(self._log_of, operation)

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            if isinstance(command, Repeatable):
                # Steps cannot be rolled back: the function itself changes nothing in a dry run.
                key = None if command.dry_run else key or command.idempotency_key
            if key is None:
                opened = Steps(
                    self._database,
                    caller.tenant_id,
                    self._writes,
                    lane_owner(operation.lane, caller),
                    log=log_of(caller, command),
                )
                return (await _count_problem(operation, mode.function(opened, caller, command))).answer
            request = idempotency.request(operation.name, caller, command, key)
            async with self._repeats.of((request.id,)):
                opened = KeyedSteps(
                    self._database,
                    caller.tenant_id,
                    self._writes,
                    lane_owner(operation.lane, caller),
                    idempotency,
                    request,
                    log_of(caller, command),
                )
                answer = await opened.read(lambda reader: idempotency.replay(reader, request))
                if answer is not None:
                    await opened.transact(lambda tx: tx.confirm())
                    return _raise_problem(answer)
                return (await _count_problem(operation, mode.function(opened, caller, command))).answer

        return run

    def _isolated_tenant(self, caller: Caller) -> int | None:
        """The tenant of a caller, in a service with row-level security; None in others."""
        return caller.tenant if self._database.tenancy else None

    async def _answer_keyed(
        self, answer_calls: AnswerCalls, tx: Tx[Any], tenant: int | None, calls: Sequence[KeyedCall], *, waits: bool
    ) -> Sequence[Any]:
        every_request = [call.request for call in calls]
        if waits:
            await self.idempotency.lock(tx, every_request)
            are_locked = [True] * len(calls)
        else:
            are_locked = await self.idempotency.lock_skip_locked(tx, every_request)
        locked_calls = [call for call, is_locked in zip(calls, are_locked, strict=True) if is_locked]

        async def answer_new(indexes: Sequence[int]) -> Sequence[Any]:
            return await answer_calls(tx, tenant, [locked_calls[index].call for index in indexes], waits=waits)

        requests = [call.request for call in locked_calls]
        new_answers = iter(await self.idempotency.once(tx, requests, answer_new) if requests else ())
        return [
            next(new_answers) if is_locked else LockedRow(call.request.id, call.call.caller.tenant_id)
            for call, is_locked in zip(calls, are_locked, strict=True)
        ]

    async def _submit_alone(self, lane: str, slots: Slots, transact: TransactCalls, caller: Caller, call: Any) -> Any:
        """Run a call separately."""
        async with slots.of(lane_owner(lane, caller)):
            with self.admission.work():
                [answer] = await transact(self._isolated_tenant(caller), [call])
        return _raise_problem(answer)

    def _submit_together(
        self, name: str, slots: Slots, transact: TransactCalls, complete: CompleteAnswers | None = None
    ) -> Submit:
        """A function that runs calls in batches."""
        return OperationBatches(
            name,
            transact,
            complete,
            self.admission,
            is_isolated=self._database.tenancy is not None,
            slots=slots,
            lock_waits=self._lock_waits,
        ).submit

    async def _dry_run(
        self, answer_calls: AnswerCalls, tx: Tx[Any], tenant: int | None, calls: Sequence[Call[Any]], *, waits: bool
    ) -> Sequence[Any]:
        """Dry runs: each call runs as if it were the only one, and is rolled back before the next."""
        results: list[Any] = []
        for call in calls:
            await tx.run("savepoint dry_run")
            try:
                results += await answer_calls(tx, tenant, [call], waits=waits)
            except Problem as problem:
                results.append(problem)
            await tx.run("rollback to savepoint dry_run")
        return results

    async def _transact(
        self,
        reads: bool,
        answer_calls: AnswerCalls,
        tenant: int | None,
        calls: Sequence[Any],
        *,
        waits: bool = True,
        commit: bool = True,
        can_commit_early: Callable[[Sequence[Any]], bool] | None = None,
    ) -> Sequence[Any]:
        """The answers to calls, from one transaction, or without one if the operation only reads.

        waits               as in `Batch`
        commit              whether to commit; if not, the transaction is rolled back
        can_commit_early    says whether these calls let the transaction commit with its last statement; None: never
        """

        def work(tx: Any) -> Awaitable[Sequence[Any]]:
            return answer_calls(tx, tenant, calls, waits=waits)

        if reads:
            return await self._database.read(work, tenant)
        return await self._database.transact(
            work, tenant, commit=commit, can_commit_early=bool(can_commit_early and can_commit_early(calls))
        )


def lane_owner(lane: str, caller: Caller) -> Owner:
    """The owner of the work of a caller in a lane, which has slots apart from other lanes; empty: the usual lane."""
    owner = caller.owner
    if not lane:
        return owner
    return (lane, *(owner[1:] if owner[0] == STRANGERS else owner))


async def _answer_singly(
    operation: Operation,
    function: Callable[..., Awaitable[Any]],
    tx: Reader[Any],
    tenant: int | None,
    calls: Sequence[Call[Any]],
    *,
    waits: bool,
) -> Sequence[Any]:
    return [await _count_problem(operation, function(tx, call.caller, call.command)) for call in calls]


async def _answer_batch(
    operation: Operation,
    function: Callable[..., Awaitable[Sequence[Any]]],
    tx: Reader[Any],
    tenant: int | None,
    calls: Sequence[Call[Any]],
    *,
    waits: bool,
) -> Sequence[Any]:
    results = await function(tx, Batch(tenant or 0, calls, waits))
    for result in results:
        if isinstance(result, Problem):
            counter(REFUSALS, operation.name, result.code).inc()
    return results


async def _answer_and_log(
    operation: Operation,
    agent_log: AgentLog,
    answer_calls: AnswerCalls,
    tx: Tx[Any],
    tenant: int | None,
    calls: Sequence[Call[Any]],
    *,
    waits: bool,
) -> Sequence[Any]:
    """The answers to calls. What agents changed by them is stored in the same transaction."""
    before = [await agent_log.version(tx, operation, call.command) if call.caller.is_agent else None for call in calls]
    answers = await answer_calls(tx, tenant, calls, waits=waits)
    done = [
        (call, answer)
        for call, answer, version in zip(calls, answers, before, strict=True)
        if call.caller.is_agent
        and not isinstance(answer, Problem | LockedRow)
        and (version is None or version != await agent_log.version(tx, operation, call.command))
    ]
    if done:
        await agent_log.store(tx, operation, done)
    return answers


async def _work_and_log(
    operation: Operation,
    agent_log: AgentLog,
    call: Call[Any],
    tx: Tx[Any],
    work: Callable[[Tx[Any]], Awaitable[T]],
) -> T:
    """The answer of the last work of steps. What an agent changed by it is stored in the same transaction."""
    before = await agent_log.version(tx, operation, call.command)
    answer = await work(tx)
    if before is None or before != await agent_log.version(tx, operation, call.command):
        await agent_log.store(tx, operation, [(call, answer)])
    return answer


def _always(calls: Sequence[Any]) -> bool:
    return True


def _is_without_agents(calls: Sequence[Call[Any]]) -> bool:
    """Whether no agent made any of the calls: then nothing follows the last statement of the operation."""
    return not any(call.caller.is_agent for call in calls)


async def _count_problem(operation: Operation, answering: Awaitable[Any]) -> Any:
    """The answer of an operation. Counts a problem that it raises."""
    try:
        return await answering
    except Problem as problem:
        counter(REFUSALS, operation.name, problem.code).inc()
        raise


def _raise_problem(answer: Any) -> Any:
    """The answer, or raise it if it is a `Problem`."""
    if isinstance(answer, Problem):
        raise answer
    return answer
