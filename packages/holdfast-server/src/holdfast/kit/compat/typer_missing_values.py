"""Lets an option without a value cost nothing. Written for typer 0.29.

Typer brings also a missing value into the type of its option, and imports pydantic for it. The options for completion
have no value, so that took half of the time of each `--help` (docs/upstream.md). It stays for the promise that
`--help` is fast, which `tests/cli/test_help.py` holds: it takes 75 ms of processor time with this, and 155 without.
"""
# pyright: reportPrivateUsage=false

from typing import Any

from typer import core
from typer._click import Context

VERSION = "0.29"


def skip_missing_values() -> None:
    """Let typer leave missing values of options with one value as they are: it would return None for them too."""
    process = core._TyperParameter.process_value

    def process_value(self: core._TyperParameter, ctx: Context, value: Any) -> Any:
        if value is not None or self.required or self.multiple or self.nargs != 1:
            return process(self, ctx, value)
        return self.callback(ctx, self, value) if self.callback else value

    core._TyperParameter.process_value = process_value
