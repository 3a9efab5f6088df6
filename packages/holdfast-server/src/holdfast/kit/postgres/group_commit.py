"""Group commit: one statement answers the calls of many callers.

Calls that arrive while a batch is being committed wait and become the next batch. With one caller, a batch has one call
and costs nothing extra. With five hundred callers, one statement and one flush to disk serve all of them. While the
answers of a batch are completed, PostgreSQL already has the next one.

A batch of one call costs almost as much as a batch of ten. So calls that can wait, such as the forms of people, collect
for a moment if they come one by one in short succession.

A batch does not wait for locked rows, since all its calls would wait. Calls that need a locked row are removed from the
batch, and wait for the row in separate batches.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import structlog
from msgspec import Struct
from psycopg import DataError, IntegrityError
from psycopg.errors import LockNotAvailable

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import create_shared_task, wait_while_connected
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.environment.metrics import BATCH_SIZES

C = TypeVar("C")
A = TypeVar("A")

CompleteAnswers = Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
"""`(answers) -> answers`: completes the answers of a batch after its commit."""

MAX_CALLS_IN_BATCH = 500
"""The maximum number of calls that one statement answers."""

MAX_WAITING_CALLS = 20_000
"""The maximum number of calls that wait for one batch: as many as `MAX_CONNECTIONS` has connections."""

SMALL_BATCH_SIZE = 8
"""Calls below which a batch costs mostly what it costs to begin one."""

SUCCESSION_SECONDS = 0.1
"""Seconds after a batch in which the next call is taken as one of many that come one by one."""

CALL_ERRORS = (DataError, IntegrityError)
"""Errors of PostgreSQL that the data of a single call causes."""

log = structlog.get_logger()


class LockedRow(Struct, frozen=True):
    """The answer to a call that needs a row which another transaction has locked. The call runs again, and then waits.

    Calls with equal answers wait together, in batches of their own.

    row       identifies the row
    tenant    the tenant of the row
    """

    row: Hashable
    tenant: int | None


class WaitingCall(NamedTuple, Generic[C, A]):
    """A call that waits for its answer. `future`: the answer, once there is one."""

    call: C
    future: asyncio.Future[A]


class Batcher(Generic[C, A]):
    """Collects the calls of `submit(call) -> answer` into batches and runs `run(calls) -> answers`, a batch at a time.

    bound            what is limited, for the page of all bounds
    run_waiting      `(locked, calls) -> answers`: runs calls that `run` answered with this `LockedRow`, and waits
    complete         completes the answers of a batch; None: they are complete
    collect_seconds  seconds that a call waits for others, if a small batch ended shortly before it
    size             the maximum number of calls in a batch
    max_waiting      the maximum number of waiting calls; a further call is refused with `service_unavailable`

    An answer that is a `Problem` is raised for its own caller only. When the data of one call makes the statement
    fail, or a row it needs is locked for too long, the batch is split in halves until only that call fails. The other
    calls of the batch succeed.
    """

    def __init__(
        self,
        bound: Bound,
        name: str,
        run: Callable[[Sequence[C]], Awaitable[Sequence[A | Problem | LockedRow]]],
        run_waiting: Callable[[LockedRow, Sequence[C]], Awaitable[Sequence[A | Problem]]] | None = None,
        *,
        complete: CompleteAnswers | None = None,
        collect_seconds: float = 0.0,
        size: int = MAX_CALLS_IN_BATCH,
        max_waiting: int = MAX_WAITING_CALLS,
    ) -> None:
        self.bound = bound
        self.name = name
        self._run = run
        self._run_waiting = run_waiting
        self._complete = complete
        self._completing: set[asyncio.Task[None]] = set()
        self._row_batchers: dict[LockedRow, _RowBatcher[C, A]] = {}
        self._size = size
        self._max_waiting = max_waiting
        self._collect_seconds = collect_seconds
        self._collects_until = 0.0
        """The time of the event loop until which a call waits for others."""
        self._calls: list[WaitingCall[C, A]] = []
        self._running: asyncio.Task[None] | None = None
        self.on_idle: Callable[[], object] = lambda: None
        """Called when no call is waiting any more, except for locked rows."""
        self.on_locked: Callable[[LockedRow, C], object] = lambda locked, call: None
        """Called when a call begins to wait for a locked row, in a batch of its own."""
        self._observe = BATCH_SIZES.labels(name).observe

    async def submit(self, call: C) -> A:
        """The answer to one call, after its batch has committed."""
        if self._count_waiting() >= self._max_waiting:
            raise SERVICE_UNAVAILABLE("Too many requests are waiting already.", retry_after=1)
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._add(WaitingCall(call, future))
        return await wait_while_connected(future)

    def _count_waiting(self) -> int:
        count = len(self._calls)
        if self._row_batchers:
            count += sum(len(batcher._calls) for batcher in self._row_batchers.values())
        return count

    def _add(self, waiting_call: WaitingCall[C, A]) -> None:
        self._calls.append(waiting_call)
        if self._running is None:
            self._running = create_shared_task(self._run_batches(), name=f"batch {self.name}")

    def _move_to_row(self, locked: LockedRow, waiting_call: WaitingCall[C, A]) -> None:
        """Make a call wait for its row, together with other calls that wait for it."""
        assert self._run_waiting, f"{self.name} has nowhere to wait for a locked row"
        batcher = self._row_batchers.get(locked)
        if batcher is None:
            batcher = self._row_batchers[locked] = _RowBatcher(
                self.bound, self.name, partial(self._run_waiting, locked), complete=self._complete, size=self._size
            )
            batcher.on_idle = partial(self._row_batchers.pop, locked)
        batcher._add(waiting_call)
        self.on_locked(locked, waiting_call.call)

    async def _run_batches(self) -> None:
        try:
            # Let every request that is ready in this turn of the loop join the first batch.
            clock = asyncio.get_running_loop().time
            await asyncio.sleep(self._collect_seconds if clock() < self._collects_until else 0)
            while self._calls:
                batch, self._calls = self._calls[: self._size], self._calls[self._size :]
                # Calls whose clients have gone meanwhile are not begun.
                batch = [waiting_call for waiting_call in batch if not waiting_call.future.done()]
                if batch:
                    self._observe(len(batch))
                    await self._run_batch(batch)
                    is_small = len(batch) < SMALL_BATCH_SIZE
                    self._collects_until = clock() + SUCCESSION_SECONDS if is_small else 0.0
        except asyncio.CancelledError:
            _fail(self._calls, _shutting_down())
            self._calls = []
            raise
        finally:
            self._running = None
            self.on_idle()

    def _fail_batch(self, batch: list[WaitingCall[C, A]], error: Exception) -> None:
        _fail(batch, error)

    async def _run_batch(self, batch: list[WaitingCall[C, A]]) -> None:
        try:
            answers = await self._run([waiting_call.call for waiting_call in batch])
            if len(answers) != len(batch):
                raise RuntimeError(f"{self.name} answered {len(answers)} of {len(batch)} calls")
        except Exception as error:
            if len(batch) > 1 and self._can_be_split(error):
                half = len(batch) // 2
                await self._run_batch(batch[:half])
                await self._run_batch(batch[half:])
            else:
                self._fail_batch(batch, error)
        except asyncio.CancelledError:
            _fail(batch, _shutting_down())
            raise
        else:
            if self._complete is None:
                self._answer(batch, answers)
            else:
                # The new task starts when this one next awaits, which is after it has sent the next batch.
                task = create_shared_task(self._complete_and_answer(batch, self._complete(answers)))
                self._completing.add(task)
                task.add_done_callback(self._completing.discard)

    async def _complete_and_answer(self, batch: list[WaitingCall[C, A]], completed: Awaitable[Sequence[Any]]) -> None:
        try:
            answers = await completed
        except Exception as error:
            _fail(batch, error)
        except asyncio.CancelledError:
            _fail(batch, _shutting_down())
            raise
        else:
            self._answer(batch, answers)

    def _answer(self, batch: list[WaitingCall[C, A]], answers: Sequence[A | Problem | LockedRow]) -> None:
        for waiting_call, answer in zip(batch, answers, strict=True):
            future = waiting_call.future
            if future.done():
                continue  # its caller was cancelled, but the work was done
            if isinstance(answer, Problem):
                future.set_exception(answer)
            elif isinstance(answer, LockedRow):
                self._move_to_row(answer, waiting_call)
            else:
                future.set_result(answer)

    def _can_be_split(self, error: Exception) -> bool:
        """Whether a single call of the batch may have caused the error."""
        return isinstance(error, CALL_ERRORS) or isinstance(error.__cause__, LockNotAvailable)


class _RowBatcher(Batcher[C, A]):
    """Calls that wait for the same row. If the row is not unlocked in time, calls that came meanwhile fail too."""

    def _can_be_split(self, error: Exception) -> bool:
        return isinstance(error, CALL_ERRORS)

    def _fail_batch(self, batch: list[WaitingCall[C, A]], error: Exception) -> None:
        super()._fail_batch(batch, error)
        if not isinstance(error, CALL_ERRORS):
            super()._fail_batch(self._calls, error)
            self._calls = []


def _shutting_down() -> Problem:
    # A new one for each batch: an exception that is raised keeps the frames of its caller.
    return SERVICE_UNAVAILABLE("The service is shutting down.", retry_after=1)


def _fail(batch: list[WaitingCall[C, A]], error: Exception) -> None:
    for waiting_call in batch:
        if not waiting_call.future.done():
            waiting_call.future.set_exception(error)
            # A cancelled caller does not read the exception; without this the event loop would report it as unread.
            with contextlib.suppress(Exception):
                waiting_call.future.exception()
