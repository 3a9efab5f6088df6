"""Every command has help, and shows it without importing what takes long."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from holdfast.cli import app

SLOW = {
    *("asyncio", "cryptography", "hashlib", "jinja2", "msgspec", "procrastinate", "psycopg", "pydantic"),
    *("pydantic_settings", "rich", "secrets", "ssl", "starlette"),
}
"""Modules that take long to import. Of them, the command line of typer needs none to explain a command."""


def commands(command: Any, *path: str) -> Iterator[str]:
    """The words of each command and each group."""
    yield " ".join(path)
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *path, name)


HELP = [*commands(typer.main.get_command(app))]


@pytest.mark.parametrize("command", HELP)
def test_help_imports_nothing_that_takes_time(command: str) -> None:
    explained = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", *command.split(), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    imported = {line.rpartition("|")[2].strip() for line in explained.stderr.splitlines()}
    assert "holdfast.cli" in imported
    assert imported & SLOW == set()
    assert "Usage" in explained.stdout


def groups(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of each group of commands."""
    yield path
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from groups(inner, *path, name)


def test_the_help_of_a_group_cuts_no_sentence() -> None:
    for path in groups(typer.main.get_command(app)):
        text = CliRunner().invoke(app, [*path, "--help"], terminal_width=80).stdout
        commands = text.partition("Commands:\n")[2].splitlines()
        assert commands
        assert [line for line in commands if not line.endswith(".") or line.endswith("...")] == [], path
