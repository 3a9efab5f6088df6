"""While the database is away, the log has one short line a minute of each kind of failure."""

import io
import logging
from collections.abc import Iterator

import psycopg
import pytest
import structlog

from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.environment import logs
from holdfast.kit.environment.logs import INTERVAL_SECONDS, OutageFilter
from tests.helpers.manual_clock import ManualClock
from tests.isolation import restored_logs


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def log_output(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the log gets."""
    text = io.StringIO()
    with restored_logs():
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr", text)
            logs.configure()
        [handler] = logging.getLogger().handlers
        handler.filters = [OutageFilter(clock)]
        yield text


def outage() -> Exception:
    """An error that the database caused, two errors deep."""
    try:
        try:
            psycopg.connect("postgresql://127.0.0.1:1/nothing")
        except psycopg.OperationalError as error:
            raise SERVICE_UNAVAILABLE("The database cannot be reached right now.", retry_after=1) from error
    except Exception as error:
        return error
    raise AssertionError("a server listens on port 1")


def lines(written: io.StringIO) -> list[str]:
    return written.getvalue().splitlines()


def test_a_kind_of_failure_is_logged_once_a_minute_without_a_traceback(
    log_output: io.StringIO, clock: ManualClock
) -> None:
    ours, library = structlog.get_logger(), logging.getLogger("some.library")
    for _ in range(100):
        for loop in ("mails", "queues"):
            ours.error("background work failed", loop=loop, exc_info=outage())
        library.error("worker\nerror", exc_info=outage())
    assert len(lines(log_output)) == 3
    clock.now = INTERVAL_SECONDS
    ours.error("background work failed", loop="mails", exc_info=outage())

    assert len(lines(log_output)) == 4
    assert "Traceback" not in log_output.getvalue()
    assert all("Connection refused" in line for line in lines(log_output))
    assert '"event": "worker error: connection failed' in lines(log_output)[2]


def test_a_group_of_failures_is_an_outage_if_each_of_them_is(log_output: io.StringIO) -> None:
    structlog.get_logger().error("failed", exc_info=ExceptionGroup("several", [outage(), outage()]))
    assert "Traceback" not in log_output.getvalue()

    structlog.get_logger().error("failed too", exc_info=ExceptionGroup("several", [outage(), ValueError("a fault")]))
    assert "ValueError: a fault" in log_output.getvalue()


def test_a_fault_of_ours_keeps_its_traceback_each_time_and_so_does_a_refused_statement(log_output: io.StringIO) -> None:
    for error in (ZeroDivisionError("ours"), psycopg.errors.UniqueViolation("a row"), psycopg.errors.QueryCanceled()):
        for _ in range(2):
            structlog.get_logger().error("failed", exc_info=error)

    assert len(lines(log_output)) == 6
    assert all('"exception"' in line for line in lines(log_output))
