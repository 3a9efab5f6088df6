"""A test that hangs ends the run, which says what it waits for."""

import asyncio
import faulthandler
import gc
import os
import sys
import threading
import time
from collections.abc import Generator

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

HANGS_AFTER = None if os.environ.get("HOLDFAST_SOAK") else 300
"""Seconds; the long versions of tests take the time they need."""

LOOK_SECONDS = 5

_running: list[tuple[pytest.Item, float]] = []
"""The test that runs, with its fixtures, and when it began."""


def pytest_sessionstart(session: pytest.Session) -> None:
    if HANGS_AFTER is not None:
        stderr = session.config.stash[fault_handler_stderr_fd_key]  # not the one that pytest captures
        threading.Thread(target=_watch, args=[HANGS_AFTER, stderr], name="hangs", daemon=True).start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note which test runs. One thread watches all tests: a timer for each test cost 0.4 ms."""
    _running[:] = [(item, time.monotonic())]
    try:
        return (yield)
    finally:
        _running.clear()


def _watch(seconds: float, stderr: int) -> None:
    while True:
        # A thread without Python, for when this one cannot go on.
        faulthandler.dump_traceback_later(seconds, exit=True, file=stderr)
        time.sleep(LOOK_SECONDS)
        for item, began in [*_running]:
            if time.monotonic() - began > seconds:
                _end(item)


def _end(item: pytest.Item) -> None:
    """End this process: what hangs need not end when it is cancelled."""
    if capturing := item.config.pluginmanager.get_plugin("capturemanager"):
        capturing.suspend_global_capture(item)
    print(f"{item.nodeid} hangs. Its tasks and threads:", file=sys.stderr)
    for task in gc.get_objects():
        if isinstance(task, asyncio.Task):
            task.print_stack(file=sys.stderr)
    faulthandler.dump_traceback(sys.stderr)
    os._exit(1)
