"""The model: clients, processes of the service, and the primary, event by event.

A process works in turns, as its event loop does. A turn takes the batches that have come back and begins as many
requests as the service does (`kit/http/request_pace.py`). Calls of an operation that wait at the same moment are
the next batch. One batch of an operation is in progress at a time: it takes a processor of the primary, then waits for
its commit. Work of several requests in one turn is counted in portions of `CALLS_TOGETHER`; their answers leave at its
end.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from types import coroutine
from typing import Any

from benchmarks.scale.costs import CallCosts
from benchmarks.scale.engine import Action, Cores, Lock, Simulation
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.request_pace import MIN_REQUESTS_IN_A_TURN, REQUESTS_IN_A_TURN, TURN_SECONDS
from holdfast.kit.operations.admission import Admission, Priority

CALLS_TOGETHER = 8
"""The most requests of which the work is counted together."""

MAX_BATCH = 500
"""The most calls in a batch (`Batcher`)."""

MICRO = 1e-6

BEFORE = 0.5
"""The share of a process's work for a call that is done before its batch begins. It is not measured."""

READ_TURNS, COMMIT_TURNS, STORE_TURNS = 1, 3, 5
"""Turns of the event loop that pass after PostgreSQL has answered until the next batch can begin: for a batch that
reads, for one whose COMMIT is sent with its statement, and for one whose COMMIT is sent later.

They were counted in a process whose turns were longer than any wait for PostgreSQL. The driver resumes a turn after
its socket is ready. A commit is a task of its own.
"""

ANSWER_TURNS, RECEIPT_TURNS = 2, 1
"""Turns that pass then until the calls are answered, and those that it takes to add receipts to the answers.

A request is begun a turn after it was read, which is counted here too.
"""

WITH_RECEIPTS = ("registrations by e-mail", "registrations by id", "joins")
"""Kinds whose answers get receipts while the next batch runs."""

COMMITTED_LATER = ("changes of stock",)
"""Kinds whose transaction needs an answer before its COMMIT is sent."""

REPEATED = ("registrations by id",)
"""Kinds whose calls repeat earlier ones: a second transaction reads what is stored."""

REFUSAL_MICROS = 45.0
"""What a refusal costs a process: as much as a constant answer (`benchmarks.reads`)."""


class Call:
    """One request. `answered` is called with the seconds after which to come again; 0: it was accepted."""

    __slots__ = ("answered", "batch", "kind", "work")

    def __init__(self, kind: "Kind", answered: Callable[["Call", int], object]) -> None:
        self.kind = kind
        self.answered = answered
        self.batch = 1
        """The number of calls in its batch."""
        self.work: Coroutine[Any, Any, None]
        """What admission counts, from the beginning to the answer."""


class Kind:
    """A kind of call.

    batches     whose batches its calls are in: those of its own, or of an operation that other kinds call, too
    lock        what its batches hold in the primary until their commit: the row of a queue or of a shop
    standby     seconds until a synchronous standby has confirmed a commit
    priority    under overload; None: never refused
    """

    def __init__(
        self,
        name: str,
        costs: CallCosts,
        *,
        batches: str | None = None,
        lock: Lock | None = None,
        standby: float = 0,
        priority: Priority | None = Priority.CHANGE,
    ) -> None:
        self.name = name
        self.costs = costs
        self.batches = batches or name
        self.lock = lock
        self.standby = standby
        self.priority = priority
        self.turns = _turns(name, costs)
        self.answer_turns = ANSWER_TURNS + (RECEIPT_TURNS if name in WITH_RECEIPTS else 0)
        self.reads_database = costs.database.call + costs.database.batch > 0


def _turns(name: str, costs: CallCosts) -> int:
    if name in COMMITTED_LATER:
        return STORE_TURNS
    if name in REPEATED:
        return 2 * COMMIT_TURNS
    return COMMIT_TURNS if costs.wal else READ_TURNS


@coroutine
def _until_answered() -> Generator[None, None, None]:
    yield


async def _be_worked_on() -> None:
    """What admission counts as work in progress, until it is resumed."""
    await _until_answered()


class Primary:
    """PostgreSQL: its cores, and the waits of commits."""

    def __init__(self, simulation: Simulation, cores: Cores, seed: int = 7) -> None:
        self.simulation = simulation
        self.cores = cores
        self.batches = 0
        self._chance = Random(seed)

    def run(self, calls: Sequence[Call], done: Action) -> None:
        """Run a batch, and call `done` after its commit."""
        kind = calls[0].kind
        if kind.lock:
            kind.lock.take(partial(self._run_batch, kind, calls, done))
        else:
            self._run_batch(kind, calls, done)

    def _run_batch(self, kind: Kind, calls: Sequence[Call], done: Action) -> None:
        self.batches += 1
        batch = max(call.kind.costs.database.batch for call in calls)
        micros = batch + sum(call.kind.costs.database.call for call in calls)
        self.cores.run(micros * MICRO, partial(self._commit, kind, done))

    def _commit(self, kind: Kind, done: Action) -> None:
        self.simulation.after(self._wait(kind) + kind.standby, partial(self._done, kind, done))

    def _done(self, kind: Kind, done: Action) -> None:
        if kind.lock:
            kind.lock.give_back()
        done()

    def _wait(self, kind: Kind) -> float:
        """Seconds that a batch waits, drawn from those that were measured."""
        return kind.costs.wait_at(self._chance.random()) * MICRO


class Process:
    """One process of the service: an event loop on one core."""

    def __init__(self, simulation: Simulation, cores: Cores, primary: Primary) -> None:
        self._simulation = simulation
        self._cores = cores
        self._primary = primary
        self._arrived: deque[Call] = deque()
        self._back: list[tuple[int, list[Call]]] = []
        self._waiting: dict[str, list[Call]] = {}
        self._in_progress: set[str] = set()
        self._is_working = False
        self._most, self._used = REQUESTS_IN_A_TURN, 0.0
        """The requests that a turn begins at most, and the processor seconds of the present turn (`Pace`)."""
        self._steps: deque[tuple[float, Action]] = deque()
        self._admission = Admission(lambda: simulation.now)
        self._counted = self._admission.counted(_be_worked_on)
        self.refused = 0

    def take(self, calls: Iterable[Call]) -> None:
        """Requests arrive."""
        self._arrived.extend(calls)
        self._wake()

    def _wake(self) -> None:
        if not self._is_working:
            self._is_working = True
            self._turn()

    def _turn(self) -> None:
        """Plan the work of one turn of the event loop."""
        back, self._back = self._back, []
        for turns, calls in back:
            if turns == calls[0].kind.answer_turns:
                self._plan_batch(calls[0].kind.batches)
            if turns:
                self._back.append((turns - 1, calls))
            else:
                self._plan_answers(calls)
        begun: dict[Kind, list[Call]] = {}
        if len(self._arrived) >= self._most:
            fitting = int(self._most * min(2.0, max(0.5, TURN_SECONDS / max(self._used, 0.001))))
            self._most = min(REQUESTS_IN_A_TURN, max(MIN_REQUESTS_IN_A_TURN, fitting))
        self._used = 0.0
        for _ in range(min(self._most, len(self._arrived))):
            call = self._arrived.popleft()
            begun.setdefault(call.kind, []).append(call)
        for kind, calls in begun.items():
            for start in range(0, len(calls), CALLS_TOGETHER):
                batch = calls[start : start + CALLS_TOGETHER]
                micros = len(batch) * kind.costs.service.call * BEFORE
                self._steps.append((micros, partial(self._begin, kind, batch)))
        self._next()

    def _next(self) -> None:
        if self._steps:
            micros, action = self._steps.popleft()
            self._used += micros * MICRO
            self._cores.run(micros * MICRO, partial(self._do, action))
            return
        for batches, waiting in self._waiting.items():
            if waiting and batches not in self._in_progress:
                self._in_progress.add(batches)
                self._plan_batch(batches)
        if self._steps:
            self._next()
        elif self._arrived or self._back:
            self._turn()
        else:
            self._is_working = False

    def _do(self, action: Action) -> None:
        action()
        self._next()

    def _begin(self, kind: Kind, calls: Sequence[Call]) -> None:
        for call in calls:
            try:
                if kind.priority:
                    self._admission.require_capacity(kind.priority)
            except Problem as problem:
                self.refused += 1
                pause = int(problem.retry_after or 1)
                self._steps.appendleft((REFUSAL_MICROS, partial(call.answered, call, pause)))
                continue
            call.work = self._counted()
            call.work.send(None)
            if kind.reads_database:
                self._waiting.setdefault(kind.batches, []).append(call)
            else:
                micros = kind.costs.service.call * (1 - BEFORE)
                self._steps.appendleft((micros, partial(self._answer, [call])))

    def _plan_batch(self, batches: str) -> None:
        if waiting := self._waiting.get(batches):
            micros = max(call.kind.costs.service.batch for call in waiting)
            self._steps.append((micros, partial(self._start, batches)))
        else:
            self._in_progress.discard(batches)

    def _start(self, batches: str) -> None:
        waiting = self._waiting[batches]
        calls, self._waiting[batches] = waiting[:MAX_BATCH], waiting[MAX_BATCH:]
        for call in calls:
            call.batch = len(calls)
        self._primary.run(calls, partial(self._come_back, calls))

    def _come_back(self, calls: list[Call]) -> None:
        self._back.append((max(call.kind.turns for call in calls) + calls[0].kind.answer_turns, calls))
        self._wake()

    def _plan_answers(self, calls: Sequence[Call]) -> None:
        for start in range(0, len(calls), CALLS_TOGETHER):
            batch = calls[start : start + CALLS_TOGETHER]
            micros = sum(call.kind.costs.service.call for call in batch) * (1 - BEFORE)
            self._steps.append((micros, partial(self._answer, batch)))

    def _answer(self, calls: Sequence[Call]) -> None:
        for call in calls:
            with suppress(StopIteration):
                call.work.send(None)
            call.answered(call, 0)
