"""Runs state machines against a service in this process. Every answer is compared with the one of a model.

`make test-long` runs a few operations with a fixed seed; `make soak` (HOLDFAST_SOAK=1) runs a million over all the
machines.
A failure names its seed: `HOLDFAST_SEED=<seed>` runs the same operations again. HOLDFAST_SHRINK=1 also looks, for up to
five minutes, for the shortest operations that fail.
"""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

S = TypeVar("S")
T = TypeVar("T")

SOAK = "HOLDFAST_SOAK" in os.environ
SEED = int(os.environ.get("HOLDFAST_SEED", "1"))
STEPS = 50
"""Rules that one example runs at most."""

PHASES = [Phase.generate, Phase.shrink] if "HOLDFAST_SHRINK" in os.environ else [Phase.generate]
ONE_ROUND = settings(
    phases=PHASES,
    max_examples=20,
    stateful_step_count=STEPS,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class MachineStage(Generic[S]):
    """A service that is open in an event loop of its own, for all the examples of a machine.

    compared    answers so far
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, service: S) -> None:
        self._loop = loop
        self.service = service
        self.compared = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to its end."""
        return self._loop.run_until_complete(work)

    def run_together(self, *works: Coroutine[Any, Any, T]) -> list[T]:
        """Begin all of them in this order, and wait for all."""

        async def all_of_them() -> list[T]:
            return await asyncio.gather(*works)

        return self.run(all_of_them())


@contextlib.contextmanager
def open_stage(opened: contextlib.AbstractAsyncContextManager[S]) -> Generator[MachineStage[S]]:
    """A service that is open while the block lasts."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        stack = contextlib.AsyncExitStack()
        service = loop.run_until_complete(stack.enter_async_context(opened))
        try:
            yield MachineStage(loop, service)
        finally:
            loop.run_until_complete(stack.aclose())


class Machine(RuleBasedStateMachine):
    """Base of the machines: a client of a service, and a model."""

    stage: MachineStage[Any]

    def agree(self, request: object, answer: object, expected: object) -> None:
        """Fail unless the service told what the model says."""
        self.stage.compared += len(cast("list[object]", answer)) if isinstance(answer, list) else 1
        assert answer == expected, f"The model disagrees about {request}: expected {expected}, was told {answer}"


def explore(stage: MachineStage[Any], machine: Callable[[], Machine], operations: int) -> None:
    """Run examples until this many answers were compared."""
    for number in itertools.count(SEED):
        if stage.compared >= operations:
            return

        @seed(number)
        def begin() -> Machine:
            return machine()

        try:
            run_state_machine_as_test(begin, settings=ONE_ROUND)  # pyright: ignore[reportArgumentType]
        except BaseException as error:
            error.add_note(f"After {stage.compared} operations. HOLDFAST_SEED={number} runs the last of them again.")
            raise
