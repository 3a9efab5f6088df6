"""A process watches its database: whether it answers, and whether both have the same time."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from holdfast.kit.process import database_health
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually

HOUR = 3600


def watching_database(service: Service, clock: Callable[[], float] = time.time) -> AbstractAsyncContextManager[None]:
    return run_in_background(database_health.watch_database(service.database, clock))


def clock_lines(logs: list[Any]) -> list[tuple[str, float]]:
    return [(line["event"], line.get("seconds_ahead", 0)) for line in logs if "clocks" in line["event"]]


async def test_clocks_that_differ_are_logged_once_and_again_when_they_agree(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_health, "POLL_SECONDS", 0.01)
    questions = 0

    def clock() -> float:
        nonlocal questions
        questions += 1
        return time.time() - (HOUR if questions < 20 else 0)

    with capture_logs() as logs:
        async with watching_database(service, clock):
            await eventually(lambda: len(clock_lines(logs)) == 2)

    (differ, seconds), (again, _) = clock_lines(logs)
    assert differ == "the clocks of this machine and of the database differ; set both by NTP: timedatectl set-ntp true"
    assert round(seconds) == -HOUR
    assert again == "the clocks of this machine and of the database agree again"


async def test_clocks_that_agree_are_not_logged(service: Service) -> None:
    with capture_logs() as logs:
        async with watching_database(service):
            await eventually(lambda: REGISTRY.get_sample_value("holdfast_database_up", {"service": "events"}) == 1)

    assert clock_lines(logs) == []
