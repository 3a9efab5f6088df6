"""The model: clients, processes of the service, and the primary, event by event.

A process works in turns, as its event loop does. A turn takes the batches that have come back and begins at most
`REQUESTS_IN_A_TURN` requests. Calls of a kind that wait at the same moment are the next batch; one batch of a kind is
in progress at a time. A batch takes a processor of the primary, then waits for its commit. Work of several requests in
one turn is counted in portions of `PORTION`: the answers of a portion leave at its end.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from benchmarks.scale.costs import CallCosts
from benchmarks.scale.engine import Action, Cores, Lock, Simulation
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.pace import REQUESTS_IN_A_TURN
from holdfast.kit.running.admission import Admission, Priority

PORTION = 8
"""The most requests of which the work is counted together."""

MAX_BATCH = 500
"""The most calls in a batch (`Batcher`)."""

MICRO = 1e-6

BEFORE = 0.5
"""The share of a process's work for a call that is done before its batch begins. It is not measured."""

READ_TURNS, STORE_TURNS = 1, 3
"""Turns"""

REFUSAL_MICROS = 45.0
"""What a refusal costs a process: as much as a constant answer (`benchmarks.reads`)."""


class Call:
    """One request. `answered` is called with the seconds after which to come again; 0: it was accepted."""

    __slots__ = ("answered", "batch", "began", "kind")

    def __init__(self, kind: "Kind", answered: Callable[["Call", int], object]) -> None:
        self.kind = kind
        self.answered = answered
        self.batch = 1
        """The number of calls in its batch."""
        self.began = 0.0


class Kind:
    """A kind of call.

    lock        what its batches hold in the primary until their commit: the row of a queue or of a shop
    standby     seconds until a synchronous standby has confirmed a commit
    priority    under overload; None: never refused
    """

    def __init__(
        self,
        name: str,
        costs: CallCosts,
        *,
        lock: Lock | None = None,
        standby: float = 0,
        priority: Priority | None = Priority.CHANGE,
    ) -> None:
        self.name = name
        self.costs = costs
        self.lock = lock
        self.standby = standby
        self.priority = priority
        self.reads_database = costs.database.call + costs.database.batch > 0


class _Admission(Admission):
    """The admission control of the service, told of work that begins and ends."""

    def begin(self) -> float:
        self.in_progress += 1
        now = self._clock()
        self._began += now
        return now

    def end(self, began: float) -> None:
        self._measure(self._clock())
        self._finished += 1
        self.in_progress -= 1
        self._began = self._began - began if self.in_progress else 0.0


class Primary:
    """PostgreSQL: its cores, and the waits of commits."""

    def __init__(self, simulation: Simulation, cores: Cores, seed: int = 7) -> None:
        self.simulation = simulation
        self.cores = cores
        self.batches = 0
        self._chance = Random(seed)

    def run(self, kind: Kind, calls: int, done: Action) -> None:
        """Run a batch, and call `done` after its commit."""
        if kind.lock:
            kind.lock.take(partial(self._run, kind, calls, done))
        else:
            self._run(kind, calls, done)

    def _run(self, kind: Kind, calls: int, done: Action) -> None:
        self.batches += 1
        micros = kind.costs.database.batch + calls * kind.costs.database.call
        self.cores.run(micros * MICRO, partial(self._commit, kind, done))

    def _commit(self, kind: Kind, done: Action) -> None:
        self.simulation.after(self._wait(kind) + kind.standby, partial(self._done, kind, done))

    def _done(self, kind: Kind, done: Action) -> None:
        if kind.lock:
            kind.lock.give_back()
        done()

    def _wait(self, kind: Kind) -> float:
        """Seconds that a batch waits, drawn from those that were measured."""
        waits = kind.costs.waits
        place = self._chance.random() * (len(waits) - 1)
        low = int(place)
        return (waits[low] + (waits[min(low + 1, len(waits) - 1)] - waits[low]) * (place - low)) * MICRO


class Process:
    """One process of the service: an event loop on one core."""

    def __init__(self, simulation: Simulation, cores: Cores, primary: Primary) -> None:
        self._simulation = simulation
        self._cores = cores
        self._primary = primary
        self._arrived: deque[Call] = deque()
        self._back: list[tuple[int, Kind, list[Call]]] = []
        self._waiting: dict[Kind, list[Call]] = {}
        self._in_progress: set[Kind] = set()
        self._is_working = False
        self._steps: deque[tuple[float, Action]] = deque()
        self._admission = _Admission(lambda: simulation.now)
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
        for turns, kind, calls in back:
            if turns:
                self._back.append((turns - 1, kind, calls))
            else:
                self._plan_batch(kind)
                self._plan_answers(kind, calls)
        begun: dict[Kind, list[Call]] = {}
        for _ in range(min(REQUESTS_IN_A_TURN, len(self._arrived))):
            call = self._arrived.popleft()
            begun.setdefault(call.kind, []).append(call)
        for kind, calls in begun.items():
            for start in range(0, len(calls), PORTION):
                portion = calls[start : start + PORTION]
                micros = len(portion) * kind.costs.service.call * BEFORE
                self._steps.append((micros, partial(self._begin, kind, portion)))
        self._next()

    def _next(self) -> None:
        if self._steps:
            micros, action = self._steps.popleft()
            self._cores.run(micros * MICRO, partial(self._do, action))
            return
        for kind, waiting in self._waiting.items():
            if waiting and kind not in self._in_progress:
                self._in_progress.add(kind)
                self._plan_batch(kind)
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
                    self._admission.require_room(kind.priority)
            except Problem as problem:
                self.refused += 1
                pause = int(problem.retry_after or 1)
                self._steps.appendleft((REFUSAL_MICROS, partial(call.answered, call, pause)))
                continue
            call.began = self._admission.begin()
            if kind.reads_database:
                self._waiting.setdefault(kind, []).append(call)
            else:
                micros = kind.costs.service.call * (1 - BEFORE)
                self._steps.appendleft((micros, partial(self._answer, [call])))

    def _plan_batch(self, kind: Kind) -> None:
        if self._waiting.get(kind):
            self._steps.append((kind.costs.service.batch, partial(self._start, kind)))
        else:
            self._in_progress.discard(kind)

    def _start(self, kind: Kind) -> None:
        waiting = self._waiting[kind]
        calls, self._waiting[kind] = waiting[:MAX_BATCH], waiting[MAX_BATCH:]
        for call in calls:
            call.batch = len(calls)
        self._primary.run(kind, len(calls), partial(self._come_back, kind, calls))

    def _come_back(self, kind: Kind, calls: list[Call]) -> None:
        self._back.append((READ_TURNS if not kind.costs.wal else STORE_TURNS, kind, calls))
        self._wake()

    def _plan_answers(self, kind: Kind, calls: Sequence[Call]) -> None:
        for start in range(0, len(calls), PORTION):
            portion = calls[start : start + PORTION]
            micros = len(portion) * kind.costs.service.call * (1 - BEFORE)
            self._steps.append((micros, partial(self._answer, portion)))

    def _answer(self, calls: Sequence[Call]) -> None:
        for call in calls:
            self._admission.end(call.began)
            call.answered(call, 0)


class Seen:
    """The latencies of answers in seconds, for each kind of call, sorted; and how many were sent and answered."""

    def __init__(self) -> None:
        self.latencies: dict[str, list[float]] = {}
        self.sent = 0
        self.answered = 0
        self.refused = 0

    @property
    def all(self) -> list[float]:
        return sorted(latency for values in self.latencies.values() for latency in values)


class ClosedLoop:
    """The load generator of the checks: clients that each wait for their answer. It takes a core, too."""

    def __init__(
        self, simulation: Simulation, cores: Cores, process: Process, kinds: Sequence[Kind], clients: int, warm: float
    ) -> None:
        self.seen = Seen()
        self._simulation = simulation
        self._cores = cores
        self._process = process
        self._warm = warm
        self._is_working = False
        self._sent_at: dict[Call, float] = {}
        self._calls = [Call(kinds[number % len(kinds)], self._answered) for number in range(clients)]
        self._answers: deque[Call] = deque(self._calls)
        self._wake()

    def _answered(self, call: Call, pause: int) -> None:
        if pause:
            self.seen.refused += 1
            self._simulation.after(pause, partial(self._come_again, call))
            return
        self._come_again(call)

    def _come_again(self, call: Call) -> None:
        self._answers.append(call)
        self._wake()

    def _wake(self) -> None:
        if not self._is_working and self._answers:
            self._is_working = True
            calls = [self._answers.popleft() for _ in range(min(PORTION, len(self._answers)))]
            micros = sum(
                call.kind.costs.generator.call + call.kind.costs.generator.batch / call.batch for call in calls
            )
            self._cores.run(micros * MICRO, partial(self._send, calls))

    def _send(self, calls: Sequence[Call]) -> None:
        now = self._simulation.now
        for call in calls:
            if call in self._sent_at:
                self.seen.answered += 1
                if now >= self._warm:
                    self.seen.latencies.setdefault(call.kind.name, []).append(now - self._sent_at[call])
            self._sent_at[call] = now
            self.seen.sent += 1
        self._process.take(calls)
        self._is_working = False
        self._wake()


class OpenLoop:
    """People who come by chance, independently of each other, so many a second; the balancer deals them out in turn.

    way    seconds that a request or an answer travels through the balancer
    """

    def __init__(
        self,
        simulation: Simulation,
        processes: Sequence[Process],
        kind: Kind,
        per_second: float,
        seconds: float,
        *,
        way: float = 0.0005,
        seed: int = 7,
    ) -> None:
        self.seen = Seen()
        self._simulation = simulation
        self._processes = processes
        self._kind = kind
        self._per_second = per_second
        self._until = seconds
        self._way = way
        self._chance = Random(seed)
        self._came_to: dict[Call, Process] = {}
        self._come()

    def _come(self) -> None:
        if self._simulation.now < self._until:
            came = self._simulation.now
            call = Call(self._kind, partial(self._answered, came))
            process = self._processes[self.seen.sent % len(self._processes)]
            self.seen.sent += 1
            self._came_to[call] = process
            self._simulation.after(self._way, partial(process.take, (call,)))
            self._simulation.after(self._chance.expovariate(self._per_second), self._come)

    def _answered(self, came: float, call: Call, pause: int) -> None:
        if pause:
            self.seen.refused += 1
            self._simulation.after(pause, partial(self._came_to[call].take, (call,)))
            return
        self.seen.answered += 1
        self.seen.latencies.setdefault(call.kind.name, []).append(self._simulation.now + self._way - came)


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile of values in any order; of none, 0."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
