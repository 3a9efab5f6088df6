"""The clients of the model: those of a check, who wait for each answer, and people who come by chance."""

from collections import deque
from collections.abc import Sequence
from functools import partial
from random import Random

from benchmarks.scale.engine import Cores, Simulation
from benchmarks.scale.model import CALLS_TOGETHER, MICRO, Call, Kind, Process


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
            calls = [self._answers.popleft() for _ in range(min(CALLS_TOGETHER, len(self._answers)))]
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
    """People who come by chance, independently of each other, at a rate; the balancer deals them out in turn.

    seconds_one_way  seconds that a request or an answer travels through the balancer
    """

    def __init__(
        self,
        simulation: Simulation,
        processes: Sequence[Process],
        kind: Kind,
        per_second: float,
        seconds: float,
        *,
        seconds_one_way: float = 0.0005,
        seed: int = 7,
    ) -> None:
        self.seen = Seen()
        self._simulation = simulation
        self._processes = processes
        self._kind = kind
        self._per_second = per_second
        self._until = seconds
        self._seconds_one_way = seconds_one_way
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
            self._simulation.after(self._seconds_one_way, partial(process.take, (call,)))
            self._simulation.after(self._chance.expovariate(self._per_second), self._come)

    def _answered(self, came: float, call: Call, pause: int) -> None:
        if pause:
            self.seen.refused += 1
            self._simulation.after(pause, partial(self._came_to[call].take, (call,)))
            return
        self.seen.answered += 1
        self.seen.latencies.setdefault(call.kind.name, []).append(self._simulation.now + self._seconds_one_way - came)


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile of values in any order; of none, 0."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
