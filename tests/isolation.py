"""Tests depend on nothing that is left in the checkout or set in the shell, and leave nothing there.

Commands read the data directory `.holdfast` and the file `.env` of their working directory, and settings from their
environment. So `make run PORT=9000`, a file `.env` or a setting in the shell would change what they see. They run in an
empty directory, without settings, and what opens these files of the checkout fails.

What a test configures of the logs ends with it.
"""

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from holdfast.events.settings import Settings as EventsSettings
from holdfast.inventory.settings import Settings as InventorySettings

ROOT = Path(__file__).parents[1]

LEFT_BEHIND = (ROOT / ".holdfast", ROOT / ".env")
"""What running Holdfast in the checkout leaves there, and what configures it."""

PREFIXES = ("HOLDFAST_", "EVENTS_", "INVENTORY_")
OF_TESTS = {"HOLDFAST_TEST_DATABASE_URL", "HOLDFAST_SOAK", "HOLDFAST_SEED", "HOLDFAST_SHRINK"}
"""The variables that are for tests themselves."""

violations: list[str] = []
"""What was opened in the checkout since the last test has ended. Some code goes on after an error."""


class CheckoutUsed(BaseException):
    """A test uses what is left in the checkout. No code that handles errors may hide it."""


def settings_in(environment: Mapping[str, str]) -> Iterator[str]:
    """The names of the variables that are settings of a service, or look like one."""
    kinds = (EventsSettings, InventorySettings)
    known = {kind.variable(field) for kind in kinds for field in kind.model_fields}
    for name in environment:
        if name not in OF_TESTS and (name.upper() in known or name.upper().startswith(PREFIXES)):
            yield name


GUARDED = frozenset(("open", "os.mkdir", "os.listdir", "os.scandir", "os.rename", "subprocess.Popen"))
"""The events of the interpreter that can use the checkout. Most of its events are others, and many in each test."""


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in GUARDED:
        return
    match event, arguments:
        case "subprocess.Popen", (_, arguments, cwd, env):
            use = command_in_checkout(arguments, cwd, os.environ if env is None else env)
        case _, (str() | bytes() as path, *_):
            use = f"{event} {file}" if (file := _left_behind(os.fsdecode(path))) else ""
        case _:
            return
    if use:
        violations.append(use)
        raise CheckoutUsed(use)


_TEXTS = tuple(str(path) for path in LEFT_BEHIND)


def _left_behind(path: str) -> str:
    """The absolute path of what is left in the checkout; empty if a path leads elsewhere."""
    # Tests run elsewhere. A name alone can be relative to another directory than the present one.
    if not path.startswith(("/", "..")):
        return ""
    file = os.path.abspath(path)  # noqa: PTH100 - costs less
    return file if file.startswith(_TEXTS) and any(Path(file).is_relative_to(path) for path in LEFT_BEHIND) else ""


def command_in_checkout(words: Any, cwd: Any, environment: Any) -> str:
    """Describes a command of Holdfast that would use the data directory of the checkout; empty if it would not."""
    if isinstance(words, str | bytes) or not words or Path(os.fsdecode(words[0])).name != "holdfast":
        return ""
    directory = Path(os.fsdecode(cwd) if cwd else Path.cwd()).resolve()
    is_free = {"HOLDFAST_DATA_DIR", b"HOLDFAST_DATA_DIR"} & {*environment}
    return "" if is_free or directory != ROOT else f"a command in the checkout: {words}"


sys.addaudithook(_guard)

for variable in [*settings_in(os.environ)]:
    del os.environ[variable]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Run the tests in an empty directory. A process that only starts workers runs none, and stays."""
    if not session.config.getoption("numprocesses", None) or hasattr(session.config, "workerinput"):
        directory = tempfile.TemporaryDirectory(prefix="holdfast-work-", ignore_cleanup_errors=True)
        Path(directory.name).chmod(0o755)  # as root, PostgreSQL runs as another user
        before = Path.cwd()
        os.chdir(directory.name)
        session.config.add_cleanup(directory.cleanup)
        session.config.add_cleanup(lambda: os.chdir(before))


@contextlib.contextmanager
def restored_logs() -> Generator[None]:
    """Restore the configuration of the logs after the block.

    What configures them writes to the output of the present test, which is closed when the next test logs something.
    """
    root = logging.getLogger()
    handlers, level, configuration = [*root.handlers], root.level, structlog.get_config()
    yield
    if root.handlers != handlers:
        root.handlers = handlers
        root.setLevel(level)
        structlog.configure(**configuration)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    with restored_logs():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail the test that has used the checkout, if its code has gone on."""
    if violations:
        uses = ", ".join(violations)
        violations.clear()
        pytest.fail(f"{item.nodeid} uses what is left in the checkout: {uses}")
