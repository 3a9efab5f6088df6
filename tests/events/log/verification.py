"""The command `holdfast-verify check`, as tests run it."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from holdfast_verify.cli import app


def run(*arguments: Path | str) -> Result:
    """What the command makes of these arguments. To build the command line of the services takes longer than most."""
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def verify(target: Path | str, *options: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit code of the command, and its report."""
    ran = run(target, "--json", *options)
    return ran.exit_code, json.loads(ran.stdout)


def rules(report: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in report["findings"]}
