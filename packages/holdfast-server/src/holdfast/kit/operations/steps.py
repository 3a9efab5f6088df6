"""Steps: an operation or a job opens its own transactions, and does slow work between them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, final

from holdfast.kit.contract.caller import Owner
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.idempotency import Idempotency, RepeatableRequest
from holdfast.kit.operations.slots import Slots
from holdfast.kit.postgres.database import Database, Reader, Tx

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


LogWork = Callable[[Tx[Any], Callable[[Tx[Any]], Awaitable[Any]]], Awaitable[Any]]
"""`(tx, work) -> answer`: runs the last work of an operation, and stores what was done by it."""


@final
class Conclusion(Generic[A]):
    """The answer of an operation in steps. Only `Steps.conclude` creates it."""

    def __init__(self, answer: A) -> None:
        self.answer = answer


class Steps(Generic[R]):
    """Opens the transactions of one operation or job, restricted to its tenant in a service with row-level security.

    tenant     the tenant of the work. With row-level security it may use only the rows of this tenant
    slots      limits the concurrent transactions of an owner; None: these transactions follow each other
    owner      the owner of the work; None: the tenant
    fence      runs the last statement of each transaction, and raises if the work must stop
    log        runs the last work of an operation, and stores what was done by it; None: nothing is stored
    """

    def __init__(
        self,
        database: Database[R],
        tenant: int | None = None,
        slots: Slots | None = None,
        owner: Owner | None = None,
        fence: Callable[[Tx[R]], Awaitable[None]] | None = None,
        log: LogWork | None = None,
    ) -> None:
        self.resources = database.resources
        self._database = database
        self._owner = owner or (tenant,)
        self._tenant = tenant if database.tenancy else None
        self._slots = slots
        self._alone = asyncio.Lock()
        self._fence = fence
        self._log = log

    async def read(self, work: Callable[[Reader[R]], Awaitable[T]]) -> T:
        return await self._database.read(work, self._tenant)

    async def transact(self, work: Callable[[Tx[R]], Awaitable[T]]) -> T:
        async with self._slots.slot_of(self._owner) if self._slots else self._alone:
            return await self._database.transact(self._fenced(work), self._tenant)

    def _fenced(self, work: Callable[[Tx[R]], Awaitable[T]]) -> Callable[[Tx[R]], Awaitable[T]]:
        fence = self._fence
        if fence is None:
            return work

        async def fenced(tx: Tx[R]) -> T:
            result = await work(tx)
            await fence(tx)
            return result

        return fenced

    async def conclude(self, work: Callable[[Tx[R]], Awaitable[A]]) -> Conclusion[A]:
        """Run the last transaction of an operation. The result of `work` is the answer."""
        return Conclusion(await self.transact(lambda tx: self._answer(tx, work)))

    async def _answer(self, tx: Tx[R], work: Callable[[Tx[R]], Awaitable[A]]) -> A:
        return await (self._log(tx, work) if self._log else work(tx))


class KeyedSteps(Steps[Any]):
    """The steps of a request with an idempotency key. The last transaction also stores the answer.

    claim    runs first in the last transaction; raises if nothing may be stored any more
    """

    def __init__(
        self,
        database: Database[Any],
        tenant: int | None,
        slots: Slots,
        owner: Owner,
        idempotency: Idempotency,
        request: RepeatableRequest,
        log: LogWork | None = None,
        claim: Callable[[Tx[Any]], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(database, tenant, slots, owner, log=log)
        self._idempotency = idempotency
        self._request = request
        self._claim = claim

    async def conclude(self, work: Callable[[Tx[Any]], Awaitable[A]]) -> Conclusion[A]:
        """Run the last transaction and return its answer, or the bytes of the request's earlier answer."""

        async def once(tx: Tx[Any]) -> A | Problem:
            async def answer_new(_: object) -> list[A]:
                return [await self._answer(tx, work)]

            if self._claim:
                await self._claim(tx)
            await self._idempotency.lock(tx, [self._request])
            [answer] = await self._idempotency.answer_once(tx, [self._request], answer_new)
            return answer

        answer = await self.transact(once)
        if isinstance(answer, Problem):
            raise answer
        return Conclusion(answer)
