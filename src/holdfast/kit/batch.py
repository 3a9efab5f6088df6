"""Group commit: one statement answers the calls of many callers.

Calls that arrive while a batch is being committed wait and become the next batch. With one caller, a batch has one call
and costs nothing extra. With five hundred callers, one statement and one flush to disk serve all of them.

A batch waits for no row that somebody else has locked, since everybody in it would wait. Calls that need such a row are
taken out of the batch, and wait for the row in batches of their own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Generic, TypeVar

import structlog
from msgspec import Struct
from psycopg import DataError, IntegrityError
from psycopg.errors import LockNotAvailable

from holdfast.kit.metrics import BATCH_SIZE
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem

C = TypeVar("C")
A = TypeVar("A")

log = structlog.get_logger()


class Locked(Struct, frozen=True):
    """The answer to a call that needs a row which somebody else has locked. The call is run again, and then waits.

    row       names the row; calls that wait for the same row share their batches
    tenant    the tenant whose row it is
    """

    row: Hashable
    tenant: int | None


class Batcher(Generic[C, A]):
    """Collects the calls of `submit(call) -> answer` into batches and runs `run(calls) -> answers`, a batch at a time.

    wait      `(locked, calls) -> answers`: runs calls that `run` answered with that `Locked`, and waits for the row
    size      the most calls in one batch
    waiting   the most calls that may wait; a further call is refused with `service_unavailable`

    An answer that is a `Problem` is raised for its own caller only. When the data of one call makes the statement
    fail, or a row it needs is locked for too long, the batch is split in halves until only that call fails. The other
    calls of the batch succeed.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Sequence[C]], Awaitable[Sequence[A | Problem | Locked]]],
        wait: Callable[[Locked, Sequence[C]], Awaitable[Sequence[A | Problem]]] | None = None,
        *,
        size: int = 500,
        waiting: int = 20_000,
    ) -> None:
        self.name = name
        self._run = run
        self._wait = wait
        self._lanes: dict[Locked, _Lane[C, A]] = {}
        self._size = size
        self._room = waiting
        self._waiting: list[tuple[C, asyncio.Future[A]]] = []
        self._draining: asyncio.Task[None] | None = None
        self.ended: Callable[[], object] = lambda: None
        """Called when no call waits any more."""
        self._observe = BATCH_SIZE.labels(name).observe

    async def submit(self, call: C) -> A:
        """Return the answer to one call, after its batch has committed."""
        if self._all_waiting() >= self._room:
            raise SERVICE_UNAVAILABLE("Too many requests are waiting already.", retry_after=1)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._add(call, answer)
        return await answer

    def _all_waiting(self) -> int:
        waiting = len(self._waiting)
        return waiting + sum(len(lane._waiting) for lane in self._lanes.values()) if self._lanes else waiting

    def _add(self, call: C, answer: asyncio.Future[A]) -> None:
        self._waiting.append((call, answer))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name=f"batch {self.name}")

    def _wait_for(self, locked: Locked, call: C, answer: asyncio.Future[A]) -> None:
        """Let a call wait for its row, together with the others that wait for it."""
        assert self._wait, f"{self.name} has nowhere to wait for a locked row"
        lane = self._lanes.get(locked)
        if lane is None:
            lane = self._lanes[locked] = _Lane(self.name, partial(self._wait, locked), size=self._size)
            lane.ended = partial(self._lanes.pop, locked)
        lane._add(call, answer)

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
            self.ended()

    def _failed(self, batch: list[tuple[C, asyncio.Future[A]]], error: Exception) -> None:
        _fail(batch, error)

    async def _run_batch(self, batch: list[tuple[C, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._run([call for call, _ in batch])
            if len(answers) != len(batch):
                raise RuntimeError(f"{self.name} answered {len(answers)} of {len(batch)} calls")
        except Exception as error:
            if len(batch) > 1 and self._is_of_one_call(error):
                half = len(batch) // 2
                await self._run_batch(batch[:half])
                await self._run_batch(batch[half:])
            else:
                self._failed(batch, error)
        except asyncio.CancelledError:
            _fail(batch, SHUTTING_DOWN)
            raise
        else:
            for (call, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue  # its caller was cancelled; the work is done nevertheless
                if isinstance(answer, Problem):
                    future.set_exception(answer)
                elif isinstance(answer, Locked):
                    self._wait_for(answer, call, future)
                else:
                    future.set_result(answer)

    def _is_of_one_call(self, error: Exception) -> bool:
        """Whether the error may be of one call of the batch, and not of all of them."""
        return isinstance(error, DataError | IntegrityError) or isinstance(error.__cause__, LockNotAvailable)


class _Lane(Batcher[C, A]):
    """Calls that wait for the same row. If it is not free in time, calls that came later are refused as well."""

    def _is_of_one_call(self, error: Exception) -> bool:
        return isinstance(error, DataError | IntegrityError)

    def _failed(self, batch: list[tuple[C, asyncio.Future[A]]], error: Exception) -> None:
        super()._failed(batch, error)
        if not isinstance(error, DataError | IntegrityError):
            super()._failed(self._waiting, error)
            self._waiting = []


SHUTTING_DOWN = SERVICE_UNAVAILABLE("The service is shutting down.", retry_after=1)


def _fail(batch: list[tuple[C, asyncio.Future[A]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
            # A cancelled caller does not read the exception; without this the event loop would report it as unread.
            with contextlib.suppress(Exception):
                future.exception()
