"""Faults on request: planned failures of future requests."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class CountedFault(Protocol):
    """A failure of the next `times` requests; later requests succeed."""

    times: int


F = TypeVar("F", bound=CountedFault)


class Faults(Generic[F]):
    """The planned faults."""

    def __init__(self) -> None:
        self._planned: list[F] = []

    def plan(self, fault: F) -> None:
        self._planned.append(fault)

    def clear(self) -> None:
        self._planned.clear()

    def take(self, hits: Callable[[F], bool]) -> F | None:
        """Use up and return the fault of a request; None if there is none. `hits`: whether a fault concerns it."""
        for fault in self._planned:
            if fault.times > 0 and hits(fault):
                fault.times -= 1
                return fault
        return None
