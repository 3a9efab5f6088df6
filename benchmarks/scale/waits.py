"""How long people wait behind what serves them in order of arrival."""

from collections.abc import Sequence
from typing import NamedTuple


class Wait(NamedTuple):
    """What people wait for, in seconds."""

    what: str
    p50: float
    p99: float


def waits_behind(arrivals: Sequence[float], served: float) -> list[tuple[float, float]]:
    """How long the people of each second wait, if `served` of them are served a second, in order of arrival.

    Returns for each second how many came, and their mean wait.
    """
    waits: list[tuple[float, float]] = []
    before = 0.0
    for came in arrivals:
        after = max(0.0, before + came - served)
        waits.append((came, (before + after) / 2 / served))
        before = after
    return waits


def weighted(waits: Sequence[tuple[float, float]], share: float) -> float:
    """The wait that this share of people does not exceed."""
    total, passed = sum(people for people, _ in waits), 0.0
    for people, wait in sorted(waits, key=lambda one: one[1]):
        passed += people
        if passed >= share * total:
            return wait
    return 0.0
