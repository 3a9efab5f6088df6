"""Group commit: one statement answers the calls of many callers.

Calls that arrive while a batch is being committed wait and become the next batch. With one caller, a batch has one call
and costs nothing extra. With five hundred callers, one statement and one flush to disk serve all of them.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import structlog
from psycopg import DataError, IntegrityError

from holdfast.kit.metrics import BATCH_SIZE
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem

C = TypeVar("C")
A = TypeVar("A")

log = structlog.get_logger()


class Batcher(Generic[C, A]):
    """Collects the calls of `submit(call) -> answer` into batches and runs `run(calls) -> answers`, a batch at a time.

    size      the most calls in one batch
    waiting   the most calls that may wait; a further call is refused with `service_unavailable`

    An answer that is a `Problem` is raised for its own caller only. When the data of one call makes the statement
    fail, the batch is split in halves until only that call fails. The other calls of the batch succeed.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Sequence[C]], Awaitable[Sequence[A | Problem]]],
        *,
        size: int = 500,
        waiting: int = 20_000,
    ) -> None:
        self.name = name
        self._run = run
        self._size = size
        self._room = waiting
        self._waiting: list[tuple[C, asyncio.Future[A]]] = []
        self._draining: asyncio.Task[None] | None = None
        self._observe = BATCH_SIZE.labels(name).observe

    @property
    def idle(self) -> bool:
        """Whether no call waits and no batch runs."""
        return self._draining is None and not self._waiting

    async def submit(self, call: C) -> A:
        """Return the answer to one call, after its batch has committed."""
        if len(self._waiting) >= self._room:
            raise SERVICE_UNAVAILABLE("Too many requests are waiting already.", retry_after=1)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, answer))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name=f"batch {self.name}")
        return await answer

    async def _drain(self) -> None:
        try:
            # Let every request that is ready in this turn of the loop join the first batch.
            await asyncio.sleep(0)
            while self._waiting:
                batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
                self._observe(len(batch))
                await self._run_batch(batch)
        except asyncio.CancelledError:
            _fail(self._waiting, SHUTTING_DOWN)
            self._waiting = []
            raise
        finally:
            self._draining = None

    async def _run_batch(self, batch: list[tuple[C, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._run([call for call, _ in batch])
            if len(answers) != len(batch):
                raise RuntimeError(f"{self.name} answered {len(answers)} of {len(batch)} calls")
        except (DataError, IntegrityError) as error:
            if len(batch) > 1:
                half = len(batch) // 2
                await self._run_batch(batch[:half])
                await self._run_batch(batch[half:])
            else:
                _fail(batch, error)
        except Exception as error:
            _fail(batch, error)
        except asyncio.CancelledError:
            _fail(batch, SHUTTING_DOWN)
            raise
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue  # its caller was cancelled; the work is done nevertheless
                if isinstance(answer, Problem):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)


SHUTTING_DOWN = SERVICE_UNAVAILABLE("The service is shutting down.", retry_after=1)


def _fail(batch: list[tuple[C, asyncio.Future[A]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
            # A cancelled caller does not read the exception; without this the event loop would report it as unread.
            with contextlib.suppress(Exception):
                future.exception()
