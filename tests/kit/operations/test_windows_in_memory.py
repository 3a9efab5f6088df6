"""Windows of rate limits in memory: they use a monotonic clock, and are deleted when they have ended."""

import time

import pytest

from holdfast.kit.operations.rate_limits import MIN_WINDOWS, Limits, WindowsInMemory
from tests.helpers.manual_clock import ManualClock
from tests.kit.operations.rate_limits import LIMITS, count_admitted, refusal_of


async def test_setting_the_clock_of_the_machine_changes_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits("memory://", LIMITS)
    assert await count_admitted(limits, "hourly", "ada") == 10
    before = await refusal_of(limits, "hourly", "ada")
    an_hour_back = time.time() - 3600

    monkeypatch.setattr(time, "time", lambda: an_hour_back)

    after = await refusal_of(limits, "hourly", "ada")
    assert before
    assert after
    assert before.retry_after == 3600
    assert after.retry_after in {3599, 3600}


async def test_windows_that_have_ended_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(time.monotonic())
    monkeypatch.setattr(time, "monotonic", clock)
    windows = WindowsInMemory()
    for number in range(MIN_WINDOWS):
        await windows.count(LIMITS["three"], "three", f"caller {number}", 1)
    clock.now += 60

    await windows.count(LIMITS["three"], "three", "one more", 1)

    assert len(windows) == 1
