"""Every command has help, and shows it without importing what takes long."""

import json
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
"""Modules that take long to import. The command line of typer needs none of them to explain a command."""


def commands(command: Any, *path: str) -> Iterator[str]:
    """The words of each command and each group."""
    yield " ".join(path)
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *path, name)


HELP = [*commands(typer.main.get_command(app))]


EXPLAIN = """
import contextlib, io, json, os, runpy, sys
import holdfast.cli

for line in sys.stdin:
    if os.fork():
        assert os.wait()[1] == 0, line
        continue
    sys.argv = ["holdfast", *line.split(), "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            runpy.run_module("holdfast", run_name="__main__")
        except SystemExit as end:
            assert not end.code, line
    modules = [name for name, module in sys.modules.items() if module]
    print(json.dumps({"text": text.getvalue(), "modules": modules}), flush=True)
    os._exit(0)
"""
"""Explains commands, each in a process that has imported only what the command line imports."""


@pytest.fixture(scope="module")
def explanations() -> dict[str, Any]:
    """What each command explains, and the modules that it has imported for that."""
    lines = "".join(f"{command}\n" for command in HELP)
    explained = subprocess.run(
        [sys.executable, "-c", EXPLAIN], input=lines, capture_output=True, text=True, timeout=60, check=True
    )
    return dict(zip(HELP, map(json.loads, explained.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("command", HELP)
def test_help_imports_nothing_that_takes_time(command: str, explanations: dict[str, Any]) -> None:
    explanation = explanations[command]

    assert "holdfast.cli" in explanation["modules"]
    assert SLOW.intersection(explanation["modules"]) == set()
    assert "Usage" in explanation["text"]


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
