"""Tests that take long, each for a reason: `make test` leaves them out, `make test-long` runs them, `.ci/run` both."""

from itertools import groupby
from pathlib import Path

import pytest

HERE = Path(__file__).parent

LONG = {
    "browser": "Chromium loads every page, and looks at it in several ways",
    "docs": "follows the documents: starts the servers they name, and restores backups",
    "faults": "starts processes and kills them in the middle of their work",
    "models": "tries thousands of random steps, and looks for bugs that are planted",
    "plans": "fills databases with hundreds of thousands of rows, and checks query plans",
    "cli/test_backup.py": "copies databases, and restores them",
    "cli/test_check_standby.py": "starts a PostgreSQL of its own",
    "cli/test_help.py": "starts every command",
    "cli/test_up.py": "starts both services as the first command does",
    "events/agents/test_generated_arguments.py": "calls every tool with hundreds of generated arguments",
    "events/agents/test_official_client.py": "serves, and connects with the official client",
    "events/draws/test_event_draw_loop.py": "waits for a draw by the real clock",
    "events/log/test_witness_processes.py": "starts witnesses, kills them, and installs another one",
    "events/mails/test_stopped_mails.py": "sends the mails of a thousand registrations",
    "events/pages/test_long_texts.py": "formats the slowest texts that are allowed",
    "events/photos/test_sandbox.py": "starts a process for each thing that it may not do",
    "events/photos/test_unmade_sizes.py": "starts and kills processes that make sizes",
    "events/queues/test_draw_loop.py": "waits for a draw by the real clock",
    "events/queues/test_release_guarantees.py": "tries thousands of random steps",
    "events/test_generated_input.py": "sends hundreds of generated requests to every operation",
    "events/test_lost_notices.py": "waits for polls",
    "inventory/availability/test_lost_notices.py": "waits for polls",
    "inventory/sync/test_any_history_of_levels.py": "lets hundreds of things happen, and syncs after each",
    "inventory/sync/test_benchmark.py": "runs a benchmark",
    "inventory/test_generated_arguments.py": "calls every tool with hundreds of generated arguments",
    "inventory/test_ledger_under_kills.py": "starts processes and kills them in the middle of their work",
    "inventory/test_lost_notices.py": "waits for polls",
    "inventory/test_streams_between_processes.py": "starts processes that push",
    "kit/background/test_enqueue.py": "waits for a poll",
    "kit/http/test_draining.py": "starts processes that end while they answer",
    "kit/postgres/test_bundled.py": "starts PostgreSQL again and again",
    "kit/postgres/test_bundled_faults.py": "starts PostgreSQL again and again, and kills it",
    "kit/postgres/test_full_disk.py": "starts PostgreSQL on disks that fill, and waits until it is ended",
    "verify/formats/test_other_verifiers.py": "compiles a program in Go, and starts it and two others for each forgery",
    "test_benchmarks.py": "runs benchmarks",
    "test_cli.py": "starts services with worker processes",
    "test_distribution.py": "builds the distribution, and runs it in an empty environment",
    "test_killed_runs.py": "starts PostgreSQL, and kills the process that started it",
    "test_wire.py": "starts both services twice, and reads every public page",
}
"""Directories and files of tests that are marked `long`, and what takes so long."""

LONG_PATHS = {HERE / name for name in LONG}

QUICK_PATHS = {
    HERE / "plans/test_arguments.py",
    *(HERE / "docs" / name for name in ("test_architecture.py", "test_contents.py", "test_links.py")),
}
"""Files in those directories that only read: `make test` runs them, since many changes make a document wrong."""

BEGIN_FIRST = (
    *("docs/test_container.py", "plans", "faults", "models", "test_distribution.py", "test_benchmarks.py"),
    *("cli/test_up.py", "kit/postgres/test_full_disk.py", "kit/postgres/test_bundled_faults.py"),
    *("events/mails/test_stopped_mails.py", "inventory/test_ledger_under_kills.py", "docs/test_backup.py"),
    *("events/agents/test_generated_arguments.py", "inventory/test_generated_arguments.py"),
    "events/test_generated_input.py",
)
"""Directories and files that begin first, the longest first: one that began last would leave other workers idle."""


def is_long(path: Path) -> bool:
    """Whether a path is one of those, or leads into one."""
    return path not in QUICK_PATHS and not LONG_PATHS.isdisjoint((path, *path.parents))


def rank(path: Path) -> int:
    """The place of a file among those that begin first; a higher number for all others."""
    return next((place for place, name in enumerate(BEGIN_FIRST) if path.is_relative_to(HERE / name)), len(BEGIN_FIRST))


def is_left_out(path: Path, config: pytest.Config) -> bool:
    """Whether a run leaves out a file, or all of a directory, as long or as not long."""
    has_quick = any(quick.is_relative_to(path) for quick in QUICK_PATHS)
    left_out = {"not long": is_long(path) and not has_quick, "long": not is_long(path) and path.is_file()}
    return left_out.get(config.option.markexpr, False)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import those that are left out."""
    return True if is_left_out(collection_path, config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them, before those that the command line does not ask for are left out."""
    for path, tests in groupby(items, key=lambda item: item.path):
        if is_long(path):
            for item in tests:
                item.add_marker("long")
