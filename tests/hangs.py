"""A test that hangs ends the run, which says what it waits for."""

import asyncio
import faulthandler
import gc
import os
import sys
import threading
from collections.abc import Generator

import pytest

HANGS_AFTER = None if os.environ.get("HOLDFAST_SOAK") else 300
"""Seconds; the long versions of tests take the time they need."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch over a test and its fixtures."""
    if HANGS_AFTER is None:
        return (yield)
    watch = threading.Timer(HANGS_AFTER, _end, [item])
    watch.daemon = True
    watch.start()
    # A thread without Python, for when even that one cannot go on.
    faulthandler.dump_traceback_later(HANGS_AFTER + 30, exit=True)
    try:
        return (yield)
    finally:
        watch.cancel()
        faulthandler.cancel_dump_traceback_later()


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
