"""Runs operations in their modes, for REST and MCP: single calls, steps, or batches that answer many calls together."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import Raw

from holdfast.kit.contract.bounds import Bound, bound_without_strangers
from holdfast.kit.contract.caller import STRANGERS, Caller, Owner
from holdfast.kit.contract.command import Repeatable
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.operations.admission import Admission
from holdfast.kit.operations.batches import OperationBatches, Submit
from holdfast.kit.operations.call_answers import (
    BatchAnswerer,
    CallAnswerer,
    CallTransaction,
    DryRunAnswerer,
    KeyedAnswerer,
    KeyedCall,
    LoggedAnswerer,
    LoggedWork,
    SingleAnswerer,
    count_problem,
)
from holdfast.kit.operations.idempotency import Idempotency, RepeatableRequest
from holdfast.kit.operations.operation import (
    AgentLog,
    ApprovalGate,
    Batched,
    Call,
    Claim,
    Operation,
    Operations,
    Single,
    Stepwise,
)
from holdfast.kit.operations.slots import MAX_WAITING, MAX_WAITING_TOGETHER, SLOT_TIMEOUT_SECONDS, Slots
from holdfast.kit.operations.steps import KeyedSteps, Steps
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.group_commit import CompleteAnswers, LockedRow

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
    name="Requests with one Idempotency-Key",
    service="both",
    total=f"1 for each key of a caller; {MAX_WAITING} wait",
    tenant="any number of keys",
)

T = TypeVar("T")


class RunOperation(Protocol):
    """Runs an operation. Raises a `Problem`. With an idempotency key, a repeated call runs only once."""

    def __call__(self, caller: Caller, command: Any, key: str | None = None) -> Coroutine[Any, Any, Any]: ...


class Runner:
    """Runs the operations of one service on its database.

    agent_log        stores what agents did; None: nothing does
    approval_gate    stores the calls of credentials that ask a person first; None: no call waits for a person

    A change is answered after its commit. One tenant's work holds at most a part of the connections; further work waits
    without a connection. In a service with row-level security, every transaction and every batch belongs to one tenant.
    """

    def __init__(
        self,
        operations: Operations,
        database: Database[Any],
        idempotency: Idempotency | None = None,
        agent_log: AgentLog | None = None,
        approval_gate: ApprovalGate | None = None,
    ) -> None:
        self._database = database
        self._agent_log = agent_log
        self._approval_gate = approval_gate
        self.idempotency = idempotency or Idempotency()
        connections = database.pool.max_size
        tenant_share = max(1, connections // TENANT_SHARE_DIVISOR)
        self.admission = Admission()
        make_slots = partial(Slots, timeout=SLOT_TIMEOUT_SECONDS, retry_after=self.admission.retry_after)
        self._writes = make_slots(TRANSACTIONS, 1 if database.tenancy else tenant_share)
        self._reads = make_slots(CONCURRENT_READS, MAX_CONCURRENT_READS if database.tenancy else tenant_share)
        self._lock_waits = make_slots(LOCK_WAITS, max(1, connections // LOCK_WAIT_SHARE_DIVISOR))
        self._repeats = Slots(REPEATS, 1)
        for operation in operations:
            assert not (database.tenancy and operation.public), (
                f"{operation.name}: row-level security needs a caller with a tenant"
            )
        self._operations = {operation.name: operation for operation in operations}
        self._runs: dict[str, RunOperation] = {}

    def run_of(self, operation: Operation) -> RunOperation:
        """What runs an operation. Its answers are without links."""
        run = self.run_with_link(operation)
        if not operation.has_link:
            return run

        async def run_without_link(caller: Caller, command: Any, key: str | None = None) -> Any:
            return (await run(caller, command, key)).body

        return run_without_link

    def run_with_link(self, operation: Operation) -> RunOperation:
        """What runs an operation. Its answers are `LinkedAnswer` if the operation has links."""
        name = operation.name
        if name not in self._runs:
            self._runs[name] = self._build_run_with_approval(self._operations[name])
        return self._runs[name]

    def find_get_operation(self, operation: Operation) -> Operation | None:
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
        """Run a read outside the table of operations, in the share of its caller."""
        async with self._reads.slot_of(caller.owner):
            with self.admission.work():
                return await self._database.read(work, self._isolated_tenant(caller))

    async def transact(self, caller: Caller, work: Callable[[Tx[Any]], Awaitable[T]], lane: str = "") -> T:
        """Run a transaction outside the table of operations, in the share of its caller in a lane."""
        async with self._writes.slot_of(lane_owner(lane, caller)):
            with self.admission.work():
                return await self._database.transact(work, self._isolated_tenant(caller))

    async def run_approved(self, operation: Operation, caller: Caller, command: Any, key: str, claim: Claim) -> Any:
        """Run a call that a person has approved, and store its answer under its idempotency key.

        `claim` runs first in the transaction that stores what the call does, so that no request is done twice.
        """
        operation = self._operations[operation.name]
        mode = operation.mode
        request = self.idempotency.request(operation.name, caller, command, key)
        if isinstance(mode, Stepwise):
            steps = self._build_steps(operation, caller, command, request, claim)
            return await self._take_steps(operation, mode, steps, caller, command)
        answerer = KeyedAnswerer(self.idempotency, self._build_answerer(operation, mode))
        call = KeyedCall(Call(caller, command), request)
        tenant = self._isolated_tenant(caller)

        async def work(tx: Tx[Any]) -> Any:
            await claim(tx)
            [answer] = await answerer.answer(tx, tenant, [call], waits=True)
            if isinstance(answer, LockedRow):
                raise SERVICE_UNAVAILABLE("Another caller is still changing the same thing.", retry_after=1)
            return _answer_or_raise(answer)

        async with self._writes.slot_of(lane_owner(operation.lane, caller)):
            with self.admission.work():
                return await self._database.transact(work, tenant)

    def _build_run_with_approval(self, operation: Operation) -> RunOperation:
        """What stores the calls of credentials that ask a person first, and runs those of all others."""
        run, gate = self._build_direct_run(operation), self._approval_gate
        if gate is None or operation.mode.reads or not gate.covers(operation):
            return run

        async def run_or_request_approval(caller: Caller, command: Any, key: str | None = None) -> Any:
            if isinstance(command, Repeatable):
                key = key or command.idempotency_key
            if not caller.asks_first or (isinstance(command, Repeatable) and command.dry_run):
                return await run(caller, command, key)
            if key and (answer := await self._find_answer(operation, caller, command, key)) is not None:
                return await self._complete_answer(operation, answer)
            outcome = await self.transact(
                caller, lambda tx: gate.request_approval(tx, operation, caller, command, key), operation.lane
            )
            if isinstance(outcome, Problem):
                raise outcome
            answer = await self._find_answer(operation, caller, command, outcome.answer_key)
            return await self._complete_answer(operation, answer)

        return run_or_request_approval

    async def _find_answer(self, operation: Operation, caller: Caller, command: Any, key: str) -> Raw | Problem | None:
        request = self.idempotency.request(operation.name, caller, command, key)
        return await self.read(caller, lambda reader: self.idempotency.find_answer(reader, request))

    async def _complete_answer(self, operation: Operation, answer: Raw | Problem | None) -> Any:
        """A stored answer as its first caller got it. Raises it if it is a `Problem`."""
        mode = operation.mode
        if answer is not None and isinstance(mode, Batched) and mode.complete:
            [answer] = await mode.complete(self._database, [answer], have_keys=True)
        if operation.answer is None and not isinstance(answer, Problem):
            return None
        return _answer_or_raise(answer)

    def _build_direct_run(self, operation: Operation) -> RunOperation:
        """What runs calls without a key, calls with one, and dry runs apart.

        The answer to a call with a key is stored; a dry run is rolled back.
        """
        mode = operation.mode
        if isinstance(mode, Stepwise):
            return self._build_run_in_steps(operation, mode)
        answerer = self._build_answerer(operation, mode)
        submit = self._build_submit(operation, mode, answerer, have_keys=False)
        submit_keyed = self._build_submit(operation, mode, KeyedAnswerer(self.idempotency, answerer), have_keys=True)
        submit_dry_run: Submit | None = None
        if issubclass(operation.command, Repeatable):
            dry_run = CallTransaction(self._database, DryRunAnswerer(answerer), is_dry_run=True)
            submit_dry_run = self._build_batches(operation, self._writes, dry_run).submit

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            if submit_dry_run:
                if command.dry_run:
                    return await submit_dry_run(caller, Call(caller, command))
                key = key or command.idempotency_key
            if key is None:
                return await submit(caller, Call(caller, command))
            request = self.idempotency.request(operation.name, caller, command, key)
            # The second of two equal concurrent requests waits here, without a connection.
            async with self._repeats.slot_of((request.id,)):
                return await submit_keyed(caller, KeyedCall(Call(caller, command), request))

        return run

    def _build_submit(
        self,
        operation: Operation,
        mode: Single[Any, Any] | Batched[Any, Any],
        answerer: CallAnswerer,
        *,
        have_keys: bool,
    ) -> Submit:
        """What runs a call, with or without an idempotency key: in a batch with others, or alone."""
        slots = self._reads if mode.reads else self._writes
        # To store the answer of a key, a read is a transaction too.
        call_transaction = CallTransaction(self._database, answerer, reads=mode.reads and not have_keys)
        if isinstance(mode, Batched):
            complete = partial(mode.complete, self._database, have_keys=have_keys) if mode.complete else None
            return self._build_batches(operation, slots, call_transaction, complete, mode.collect_seconds).submit

        async def submit_alone(caller: Caller, call: Any) -> Any:
            async with slots.slot_of(lane_owner(operation.lane, caller)):
                with self.admission.work():
                    [answer] = await call_transaction(self._isolated_tenant(caller), [call])
            return _answer_or_raise(answer)

        return submit_alone

    def _build_batches(
        self,
        operation: Operation,
        slots: Slots,
        call_transaction: CallTransaction,
        complete: CompleteAnswers | None = None,
        collect_seconds: float = 0.0,
    ) -> OperationBatches:
        return OperationBatches(
            operation.name,
            call_transaction,
            complete,
            self.admission,
            is_isolated=self._database.tenancy is not None,
            slots=slots,
            lock_waits=self._lock_waits,
            collect_seconds=collect_seconds,
        )

    def _build_answerer(self, operation: Operation, mode: Single[Any, Any] | Batched[Any, Any]) -> CallAnswerer:
        """What answers the calls of an operation in a transaction."""
        answerer = BatchAnswerer(operation, mode) if isinstance(mode, Batched) else SingleAnswerer(operation, mode)
        if self._agent_log and not mode.reads and self._agent_log.covers(operation):
            return LoggedAnswerer(operation, self._agent_log, answerer)
        return answerer

    def _build_run_in_steps(self, operation: Operation, mode: Stepwise[Any, Any]) -> RunOperation:
        """What takes the steps of calls, and stores the answer to a call with a key."""

        async def run(caller: Caller, command: Any, key: str | None = None) -> Any:
            if isinstance(command, Repeatable):
                # Steps cannot be rolled back: the function itself changes nothing in a dry run.
                key = None if command.dry_run else key or command.idempotency_key
            if key is None:
                return await self._take_steps(
                    operation, mode, self._build_steps(operation, caller, command), caller, command
                )
            request = self.idempotency.request(operation.name, caller, command, key)
            async with self._repeats.slot_of((request.id,)):
                steps = self._build_steps(operation, caller, command, request)
                answer = await steps.read(lambda reader: self.idempotency.find_answer(reader, request))
                if answer is not None:
                    await steps.transact(lambda tx: tx.wait_for_earlier_commits())
                    return _answer_or_raise(answer)
                return await self._take_steps(operation, mode, steps, caller, command)

        return run

    def _build_steps(
        self,
        operation: Operation,
        caller: Caller,
        command: Any,
        request: RepeatableRequest | None = None,
        claim: Claim | None = None,
    ) -> Steps[Any]:
        """The steps of a call. Those of a request with an idempotency key store its answer.

        claim    runs first in the last transaction
        """
        owner, agent_log = lane_owner(operation.lane, caller), self._agent_log
        log: LoggedWork | None = None
        if agent_log and agent_log.covers(operation) and caller.is_agent:
            log = LoggedWork(operation, agent_log, Call(caller, command))
        if request is None:
            return Steps(self._database, caller.tenant_id, self._writes, owner, log=log)
        return KeyedSteps(self._database, caller.tenant_id, self._writes, owner, self.idempotency, request, log, claim)

    async def _take_steps(
        self, operation: Operation, mode: Stepwise[Any, Any], steps: Steps[Any], caller: Caller, command: Any
    ) -> Any:
        """Take the steps of a call. Returns its answer."""
        return (await count_problem(operation, mode.function(steps, caller, command))).answer

    def _isolated_tenant(self, caller: Caller) -> int | None:
        """The tenant of a caller, in a service with row-level security; None in others."""
        return caller.tenant if self._database.tenancy else None


def lane_owner(lane: str, caller: Caller) -> Owner:
    """The owner of the work of a caller in a lane, which has slots apart from other lanes; empty: the usual lane."""
    owner = caller.owner
    if not lane:
        return owner
    return (lane, *(owner[1:] if owner[0] == STRANGERS else owner))


def _answer_or_raise(answer: Any) -> Any:
    """The answer, or raise it if it is a `Problem`."""
    if isinstance(answer, Problem):
        raise answer
    return answer
