"""Faults on request: what goes wrong with requests to come."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Fault(Protocol):
    """What goes wrong with so many requests; afterwards everything is well again."""

    times: int


F = TypeVar("F", bound=Fault)


class Faults(Generic[F]):
    """The faults that are to come."""

    def __init__(self) -> None:
        self._planned: list[F] = []

    def plan(self, fault: F) -> None:
        self._planned.append(fault)

    def clear(self) -> None:
        self._planned.clear()

    def take(self, hits: Callable[[F], bool]) -> F | None:
        """The fault that a request meets, which is used up by it. `hits`: whether one concerns the request."""
        for each in self._planned:
            if each.times > 0 and hits(each):
                each.times -= 1
                return each
        return None
