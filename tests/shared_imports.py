"""Workers import the test modules in different orders: who is the first to import one compiles it for all.

Python compiles a module when it is imported for the first time, and for tests pytest rewrites it before. In a new
checkout that is most of the time until the first test, and all workers would do the same at the same moment.
"""

import contextlib
import importlib
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.config import Config

from tests.long import is_left_out

ROOT = Path(__file__).parents[1]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In a worker of a run of all tests: import them, each worker from another place in the list."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    if worker and session.config.args_source is Config.ArgsSource.TESTPATHS:
        modules = _modules(session.config)
        start = len(modules) * int(worker.removeprefix("gw")) // int(workers)
        for module in (*modules[start:], *modules[:start]):
            # What is wrong with one is said when it is collected.
            with contextlib.suppress(Exception):
                importlib.import_module(module)


def _modules(config: pytest.Config) -> Sequence[str]:
    paths = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if not is_left_out(path, config))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
