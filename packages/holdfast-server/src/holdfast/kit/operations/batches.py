"""Batches of the calls of one operation: those that wait together are answered in one transaction."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.operations.admission import Admission, Work
from holdfast.kit.operations.slots import Slots
from holdfast.kit.postgres.group_commit import (
    MAX_CALLS_IN_BATCH,
    MAX_WAITING_CALLS,
    Batcher,
    CompleteAnswers,
    LockedRow,
)

MAX_LOCK_WAITS = 4
"""How often a call waits for a locked row before it is refused."""

BATCHED_CALLS = Bound(
    name="Calls that wait for a batch of one operation",
    service="both",
    total=f"{MAX_WAITING_CALLS}, in inventory of each shop; a batch takes {MAX_CALLS_IN_BATCH}",
    tenant="events: none, in order of arrival; inventory: a tenant has a batch of its own",
    address="one for each of its connections",
    reserved="-",
    stranger="Others wait for a batch with as many calls as it has connections.",
)

Submit = Callable[[Caller, Any], Awaitable[Any]]
"""Runs one call, and returns its answer after the commit. Raises a `Problem`."""


class TransactCalls(Protocol):
    """Answers calls in one transaction, or without a transaction if the operation only reads.

    waits    as `waits` of `Batch`: whether to wait for locked rows
    """

    def __call__(
        self, tenant: int | None, calls: Sequence[Any], *, waits: bool = True
    ) -> Coroutine[Any, Any, Sequence[Any]]: ...


class OperationBatches:
    """Answers the calls of one operation in batches.

    transact         answers a batch
    complete         completes the answers of a batch after its commit; None: they are complete
    is_isolated      whether the calls of a batch belong to one tenant
    slots            the slots of tenants: each batch of an isolated operation takes one
    lock_waits       the slots of tenants: each batch that waits for a locked row takes one, unless it is isolated
    collect_seconds  as `collect_seconds` of `Batcher`, for the batch of all tenants
    """

    __slots__ = (
        "_admission",
        "_batchers",
        "_collect_seconds",
        "_complete",
        "_is_isolated",
        "_lock_waits",
        "_name",
        "_slots",
        "_transact",
        "_works",
    )

    def __init__(
        self,
        name: str,
        transact: TransactCalls,
        complete: CompleteAnswers | None,
        admission: Admission,
        *,
        is_isolated: bool,
        slots: Slots,
        lock_waits: Slots,
        collect_seconds: float,
    ) -> None:
        self._name = name
        self._transact = transact
        self._complete = complete
        self._admission = admission
        self._is_isolated = is_isolated
        self._slots = slots
        self._lock_waits = lock_waits
        self._collect_seconds = collect_seconds
        self._batchers: dict[int | None, Batcher[Any, Any]] = {}
        self._works: dict[int, Work] = {}
        """The admission record of each call in the shared batch, by `id(call)`."""

    def submit(self, caller: Caller, call: Any) -> Awaitable[Any]:
        """Run a call in a batch with others."""
        if self._is_isolated:
            return self._submit_own(caller.tenant, call)
        return self._submit_shared(call)

    async def _submit_shared(self, call: Any) -> Any:
        batcher = self._batchers.get(None)
        if batcher is None:
            transact = partial(self._transact, None, waits=False)
            batcher = self._batchers[None] = Batcher(
                BATCHED_CALLS,
                self._name,
                transact,
                self._transact_waiting,
                complete=self._complete,
                collect_seconds=self._collect_seconds,
            )
            batcher.on_locked = self._move_to_tenant
        with self._admission.work() as work:
            self._works[id(call)] = work
            try:
                return await batcher.submit(call)
            finally:
                del self._works[id(call)]

    async def _submit_own(self, tenant: int, call: Any) -> Any:
        batcher = self._batchers.get(tenant)
        if batcher is None:
            batcher = self._batchers[tenant] = Batcher(
                BATCHED_CALLS, self._name, partial(self._transact_of_tenant, tenant), complete=self._complete
            )
            batcher.on_idle = partial(self._batchers.pop, tenant)
        with self._admission.work(tenant):
            return await batcher.submit(call)

    async def _transact_of_tenant(self, tenant: int, calls: Sequence[Any]) -> Sequence[Any]:
        async with self._slots.slot_of((tenant,)):
            with self._admission.work():
                return await self._transact(tenant, calls)

    async def _transact_waiting(self, locked: LockedRow, calls: Sequence[Any]) -> Sequence[Any]:
        async with self._lock_waits.slot_of((locked.tenant,)):
            answers = [*await self._transact(None, calls)]
            for _ in range(MAX_LOCK_WAITS - 1):
                # The awaited row may be gone, and another row in its place may be locked again.
                locked_again = [index for index, answer in enumerate(answers) if isinstance(answer, LockedRow)]
                if locked_again:
                    answers_after_wait = await self._transact(None, [calls[index] for index in locked_again])
                    for index, answer in zip(locked_again, answers_after_wait, strict=True):
                        answers[index] = answer
        return [_locked_problem() if isinstance(answer, LockedRow) else answer for answer in answers]

    def _move_to_tenant(self, locked: LockedRow, call: Any) -> None:
        if work := self._works.get(id(call)):
            work.move_to_tenant(locked.tenant)


def _locked_problem() -> Problem:
    # A new one for each call: an exception that is raised keeps the frames of its caller.
    return SERVICE_UNAVAILABLE("Another caller is still changing the same thing.", retry_after=1)
