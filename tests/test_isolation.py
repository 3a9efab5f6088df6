"""Tests see nothing of the checkout's data directory, of the settings of the shell, and of the logs of other tests."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from holdfast.events.service import EVENTS
from tests import isolation
from tests.helpers.command_line import run_holdfast
from tests.isolation import LEFT_BEHIND, ROOT, CheckoutUsed, command_in_checkout, restored_logs


@pytest.fixture(autouse=True)
def violations() -> Iterator[list[str]]:
    """What this test has used on purpose, which is not held against it."""
    yield isolation.violations
    isolation.violations.clear()


@pytest.mark.parametrize("directory", LEFT_BEHIND, ids=lambda path: path.name)
def test_files_left_in_the_checkout_cannot_be_opened_by_tests(directory: Path, violations: list[str]) -> None:
    for file in (directory, directory / "events.address", os.path.relpath(directory / "events.address")):
        with pytest.raises(CheckoutUsed):
            Path(file).read_text()
    assert len(violations) == 3


def test_commands_of_tests_run_in_an_empty_directory() -> None:
    assert not Path.cwd().is_relative_to(ROOT)
    assert EVENTS.configured().data_dir.resolve() == Path.cwd() / ".holdfast"
    assert run_holdfast("events", "address").stdout == "http://127.0.0.1:8002\n"


def log_configuration() -> tuple[list[logging.Handler], int, dict[str, Any]]:
    root = logging.getLogger()
    return [*root.handlers], root.level, structlog.get_config()


def test_a_configuration_of_the_logs_by_a_test_ends_with_the_test() -> None:
    before = log_configuration()

    with restored_logs():
        EVENTS.configured()
        assert log_configuration() != before

    assert log_configuration() == before


def test_a_command_in_the_checkout_needs_a_data_directory_of_its_own() -> None:
    command = [Path(sys.executable).with_name("holdfast"), "events", "address"]

    with pytest.raises(CheckoutUsed):
        subprocess.run(command, cwd=ROOT, check=False)

    assert command_in_checkout(command, ROOT, {"HOLDFAST_DATA_DIR": "/elsewhere"}) == ""
    assert command_in_checkout(command, None, {}) == ""


HOSTILE = {
    "HOLDFAST_PORT": "9000",
    "HOLDFAST_DATA_DIR": "/nowhere",
    "EVENTS_BASE_URL": "https://shell.example",
    "EVENTS_DATABASE_URL": "postgresql://shell.example/events",
    "API_REGISTRATION_NOTIFY": "false",
    "SMTP_HOST": "mail.example",
    "smtp_port": "2525",
    "INVENTORY_MISSPELT": "1",
}
PRINT = "import json, os; import tests.isolation as isolation; print(*isolation.settings_in(os.environ))"


def test_settings_of_the_shell_are_gone_before_a_test_runs() -> None:
    environment = {**os.environ, **HOSTILE, "HOLDFAST_SOAK": "1"}
    assert {*isolation.settings_in(environment)} == {*HOSTILE}

    rest = subprocess.run(
        [sys.executable, "-c", PRINT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )

    assert rest.stdout == "\n"
    assert [*isolation.settings_in(os.environ)] == []
