"""Work in steps: an operation or a job that opens its own transactions, and does other slow work between them."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, final

from holdfast.kit.database import Database, Reader, Tx
from holdfast.kit.idempotency import Idempotency, Request
from holdfast.kit.limits import Slots
from holdfast.kit.problems import Problem

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


@final
class Concluded(Generic[A]):
    """The answer of an operation in steps, which only `Steps.conclude` makes."""

    def __init__(self, answer: A) -> None:
        self.answer = answer


class Steps(Generic[R]):
    """Opens the transactions of one operation or job, restricted to its tenant in a service with row-level security.

    tenant     the tenant whose work it is. With row-level security it may use only the rows of this tenant
    turns      slots that bound how many transactions of a tenant run at once
    """

    def __init__(self, database: Database[R], tenant: int | None = None, turns: Slots | None = None) -> None:
        self.resources = database.resources
        self._database = database
        self._owner = tenant
        self._tenant = tenant if database.tenancy else None
        self._turns = turns or Slots(1)

    async def read(self, work: Callable[[Reader[R]], Awaitable[T]]) -> T:
        return await self._database.read(work, self._tenant)

    async def transact(self, work: Callable[[Tx[R]], Awaitable[T]]) -> T:
        async with self._turns.of(self._owner):
            return await self._database.transact(work, self._tenant)

    async def conclude(self, work: Callable[[Tx[R]], Awaitable[A]]) -> Concluded[A]:
        """The last transaction of an operation: what `work` returns is the answer."""
        return Concluded(await self.transact(work))


class KeyedSteps(Steps[Any]):
    """Steps of a request with an idempotency key: its answer is stored with the last one."""

    def __init__(
        self, database: Database[Any], tenant: int | None, turns: Slots, idempotency: Idempotency, request: Request
    ) -> None:
        super().__init__(database, tenant, turns)
        self._idempotency = idempotency
        self._request = request

    async def conclude(self, work: Callable[[Tx[Any]], Awaitable[A]]) -> Concluded[A]:
        """The last transaction with its answer, or the bytes of the answer the request had before."""

        async def once(tx: Tx[Any]) -> A | Problem:
            async def anew(_: object) -> list[A]:
                return [await work(tx)]

            await self._idempotency.lock(tx, [self._request])
            [answer] = await self._idempotency.once(tx, [self._request], anew)
            return answer

        answer = await self.transact(once)
        if isinstance(answer, Problem):
            raise answer
        return Concluded(answer)
