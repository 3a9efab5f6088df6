"""Wrong options on the command line are refused with what would be right, in lines that fit the terminal."""

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException

from holdfast import cli
from holdfast.cli import app
from tests.helpers.command_line import SECRET_SETTINGS, run_holdfast_in
from tests.helpers.forking import TIMEOUT_SECONDS, forks
from tests.helpers.processes import HOLDFAST

COLUMNS = 80

WORDS_OF_LIBRARIES = re.compile(r"Input should|Value error|valid integer|unable to parse|pydantic|Traceback")


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command, with its words."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from commands(inner, *path, name)


def refusals(command: Any, parameter: Any) -> Iterator[str]:
    """What is messages of values that a parameter does not take. The command itself is not run."""
    required = [other for other in command.params if other.required and other is not parameter]
    for value in ("abc", "-1", "1.5", "99999999999999999999999", "/nothing/here"):
        words = [word for option in (parameter, *required) for word in with_value(option, value)]
        try:
            command.make_context("holdfast", words)
        except TyperException as error:
            messages = io.StringIO()
            with contextlib.redirect_stderr(messages):
                cli.show_usage_error(error)
            yield messages.getvalue().splitlines()[-1]


def with_value(parameter: Any, value: str) -> list[str]:
    if parameter.param_type_name == "argument":
        return [value]
    return [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], value]


def test_no_value_of_any_option_is_refused_in_the_words_of_a_library() -> None:
    messages = {
        " ".join((*path, parameter.name)): [*refusals(command, parameter)]
        for path, command in commands(typer.main.get_command(app))
        for parameter in command.params
    }

    assert len(messages["up port"]) == 5
    assert {name: lines for name, lines in messages.items() if any(map(WORDS_OF_LIBRARIES.search, lines))} == {}
    assert [line for lines in messages.values() for line in lines if not line.endswith((".", ")"))] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("up --port abc", "Invalid value for '--port': It must be a whole number, not 'abc'."),
        ("up --port 99999", "Invalid value for '--port': It must be at most 65532, not '99999'."),
        ("events serve --port 1.5", "Invalid value for '--port': It must be a whole number, not '1.5'."),
        ("events serve --workers 0", "Invalid value for '--workers': It must be at least 1, not '0'."),
        ("inventory jobs --retry x", "Invalid value for '--retry': It must be a whole number, not 'x'."),
        ("events mail retry x", "Invalid value for 'ID': It must be a whole number, not 'x'."),
        ("check --service all", "Invalid value for '--service': 'all' is not one of 'inventory', 'events'."),
        ("events payments reconcile --days -1", "Invalid value for '--days': It must be at least 1, not '-1'."),
        ("events mail list --limit 0", "Invalid value for '--limit': It must be at least 1, not '0'."),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right(words: str, message: str, tmp_path: Path) -> None:
    refusal = run_holdfast_in(tmp_path, *words.split())

    assert (refusal.returncode, refusal.stdout) == (2, "")
    assert refusal.stderr.splitlines()[-1] == f"Error: {message}"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("HOLDFAST_PORT", "abc", "HOLDFAST_PORT must be a whole number."),
        ("DRAIN_SECONDS", "abc", "DRAIN_SECONDS must be a number."),
        ("DRAIN_SECONDS", "nan", "DRAIN_SECONDS must be at most 300."),
        ("DRAIN_SECONDS", "301", "DRAIN_SECONDS must be at most 300."),
        ("DATABASE_POOL_SIZE", "", "DATABASE_POOL_SIZE must be a whole number."),
    ],
)
def test_a_wrong_setting_is_refused_in_our_words(variable: str, value: str, message: str, tmp_path: Path) -> None:
    refusal = run_holdfast_in(tmp_path, "events", "serve", **{variable: value})

    assert refusal.stderr.startswith(message)


def in_terminal(directory: Path, *words: str, **environment: str) -> list[str]:
    """The lines that a command shows on a terminal of 80 columns."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    environment = {**os.environ, **SECRET_SETTINGS, "COLUMNS": str(COLUMNS), **environment}
    process = forks().start([HOLDFAST, *words], directory, environment, terminal, terminal)
    os.close(terminal)
    output = b""
    while True:
        try:
            chunk = os.read(controller, 65_536)
        except OSError:  # the process has ended
            break
        if not chunk:
            break
        output += chunk
    process.wait(TIMEOUT_SECONDS)
    os.close(controller)
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output.decode()).replace("\r\n", "\n").splitlines()


AWAY = "postgresql://ann:secret@127.0.0.1:1/nothing"


@pytest.mark.parametrize(
    ("words", "database"),
    [
        ("check", ""),
        ("check", AWAY),
        ("check --point nothing", ""),
        ("status", ""),
        ("status", AWAY),
        ("events migrate", AWAY),
        ("inventory serve --port 0", AWAY),
        ("backup place", ""),
        ("restore place", ""),
        ("secret new", ""),
        ("config check", ""),
        ("verify nothing", ""),
        ("events key list", ""),
        ("up --port 99999", ""),
    ],
)
def test_no_line_is_wider_than_the_terminal_but_for_what_must_not_be_cut(
    words: str, database: str, tmp_path: Path
) -> None:
    output = in_terminal(tmp_path, *words.split(), EVENTS_DATABASE_URL=database, INVENTORY_DATABASE_URL=database)

    assert output
    # A word that is longer than a line stays whole, alone in its line.
    assert [line for line in output if len(line) > COLUMNS and len(line.split()) > 1] == []
