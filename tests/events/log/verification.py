"""The command `holdfast verify`, as tests run it."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from holdfast.cli import app


def verify(target: Path | str, *options: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit code of `holdfast verify`, and its report."""
    ran = CliRunner().invoke(app, ["verify", str(target), "--json", *map(str, options)])
    return ran.exit_code, json.loads(ran.stdout)


def rules(report: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in report["findings"]}
