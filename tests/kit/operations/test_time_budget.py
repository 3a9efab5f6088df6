"""Budgets of time: no owner begins work after its budget is spent, and all of them have it again in the next window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations import time_budget
from holdfast.kit.operations.time_budget import TimeBudget
from tests.helpers.manual_clock import ManualClock

BOUND = Bound(name="Tests", service="both", total="", tenant="", address="", reserved="", stranger="")
WINDOW = 60.0
STEP = st.tuples(st.sampled_from("abc"), st.floats(0.1, 20), st.floats(0, 40))


def test_an_owner_without_budget_is_refused_until_the_window_ends() -> None:
    clock = ManualClock(1000)
    budget = TimeBudget(BOUND, WINDOW, "{seconds} s in {minutes} min", clock)
    budget.spend("ada", 3)
    budget.require("ada", 4)
    budget.spend("ada", 1)
    clock.now += 10

    with pytest.raises(Problem) as refusal:
        budget.require("ada", 4)
    budget.require("ben", 4)
    clock.now += 50
    budget.require("ada", 4)

    assert (refusal.value.code, refusal.value.retry_after) == ("rate_limited", 50)
    assert refusal.value.message == "4 s in 1 min"


@given(steps=st.lists(STEP, max_size=60), seconds=st.floats(1, 30))
def test_no_owner_ever_has_more_than_its_budget_and_one_piece_of_work_in_a_window(
    steps: list[tuple[str, float, float]], seconds: float
) -> None:
    clock = ManualClock(1000)
    budget = TimeBudget(BOUND, WINDOW, "", clock)
    done: dict[str, list[tuple[float, float]]] = {}

    for owner, cost, pause in steps:
        clock.now += pause
        try:
            budget.require(owner, seconds)
        except Problem:
            continue
        budget.spend(owner, cost)
        done.setdefault(owner, []).append((clock.now, cost))

    for work in done.values():
        for began, _ in work:
            # A window begins with some work: at most two of them touch any span of this length.
            costs = [cost for at, cost in work if began <= at < began + WINDOW]
            assert sum(costs) <= 2 * (seconds + max(costs))


def test_ended_windows_of_budgets_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_budget, "MIN_WINDOWS", 10)
    clock = ManualClock(1000)
    budget = TimeBudget(BOUND, WINDOW, "", clock)

    for owner in range(1_000):
        budget.spend(owner, 1)
        clock.now += WINDOW / 5

    assert len(budget._spent) <= 20  # pyright: ignore[reportPrivateUsage] - nothing else shows what is kept
