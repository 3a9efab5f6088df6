"""Every command explains itself at once: it imports only what an explanation needs."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from holdfast.cli import app

HELP = [
    *("config", "config show", "config check", "secret", "secret new", "events address", "status", "verify"),
    *("events mail test", "events organizer add", "events key revoke"),
    *("", "up", "check", "events", "events serve", "events worker", "events migrate", "events jobs", "events key"),
    *("events key create", "events key list", "events organizer", "events organizer list", "events organizer link"),
    *("events person", "events person export", "events person erase"),
    *("events app", "events app list", "events app disconnect"),
    *("events mail", "events mail list", "inventory mail", "inventory mail retry"),
    *("inventory", "inventory serve", "inventory shop", "inventory shop list", "inventory shop key"),
    *(
        "inventory shop locations",
        "inventory shop owner",
        "inventory console-link",
        "inventory webhooks",
        "inventory platform-double",
    ),
    *("inventory sign-proxy-url", "inventory check"),
]
SLOW = {"asyncio", "cryptography", "jinja2", "msgspec", "procrastinate", "psycopg", "pydantic_settings", "starlette"}


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
