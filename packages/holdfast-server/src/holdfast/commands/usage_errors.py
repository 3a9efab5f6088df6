"""What a command says of words that it does not understand."""

import io
from typing import Any

import typer

from holdfast_verify.terminal import fitted, sentences


def show(error: Any) -> int:
    """Print an error of the command line to standard error. Returns the exit status.

    error    an error of typer, which has no public class for all of them
    """
    _explain(error)
    text = io.StringIO()
    error.show(text)
    typer.echo(fitted(sentences(text.getvalue()), err=True), err=True)
    return error.exit_code


def _explain(error: Any) -> None:
    """Say of a value that is not acceptable what would be right. The words of typer are for programmers."""
    from pydantic import ValidationError

    from holdfast.kit.environment.variables import error_text

    if isinstance(error.__cause__, ValidationError):
        detail = error.__cause__.errors()[0]
        text = error_text(detail)
        error.message = text if detail["type"] == "value_error" else f"It {text}, not {detail['input']!r}."
