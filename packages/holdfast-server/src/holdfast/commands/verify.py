"""`holdfast verify`: checks the public log of an event or a queue, or a receipt. It trusts nothing but a key."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.commands.progress import Progress
from holdfast.commands.services import AsJson, print_json
from holdfast.kit.process.garbage_collection import importing
from holdfast.kit.process.script_output import fitted, sentences

Target = Annotated[
    str,
    typer.Argument(
        metavar="URL|FILE",
        help="The address of a log (https://host/log/events/7, or https://host/log/heads), or of a page that links to "
        "one; the link of your registration; a directory with a copy of a log; a receipt (JSON) or a .tlog-proof file.",
    ),
]


class TerminalProgress:
    """Shows how far a check is on a terminal. Elsewhere it says once what it waits for."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._read_count, self._has_waited = progress, 0, False

    def count(self, more: int, total: int) -> None:
        self._read_count += more
        self._progress.show(f"{self._read_count:,} entries read")

    def wait(self, text: str) -> None:
        if self._progress.is_terminal:
            self._progress.show(text)
        elif not self._has_waited:
            self._has_waited = True
            self._progress.line(text)


def verify(
    target: Target,
    key: Annotated[
        str | None,
        typer.Option(metavar="VKEY", help="The key that you trust; otherwise the one that the log itself serves."),
    ] = None,
    head: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the head of the log is saved. The log must begin with it next time."),
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="ID", help="For whom a receipt is, if it does not say so itself.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="URL|DIRECTORY", help="Where the log of a receipt is, if it is not where that says."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Check a receipt without its log; needs --key.")] = False,
    mail_line: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help='The line about the log in a mail, such as "18,912 entries, 3f2a 9c1d".'),
    ] = None,
    witness: Annotated[
        list[str] | None,
        typer.Option(metavar="VKEY", help="A witness that must have cosigned the head log; may be given again."),
    ] = None,
    head_log: Annotated[
        bool,
        typer.Option("--head-log", help="Read the head log too: the log must begin with each head that it has of it."),
    ] = False,
    registration: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The link of your registration, from the mail: its page must say what the log says."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that nobody jumped the line.

    Of a log: the signature of its head, the hashes of all entries, that each outcome follows by the rules, and that the
    head log of the service has the head; earlier logs of the same event are read too. Of a receipt: its signature, that
    the log has the arrival, and what came later. It says at the end what was not checked. Exits with 0 if all that was
    checked is right, with 1 if something is wrong or not proved, and with 2 if it could not be checked.
    """
    with importing():
        import asyncio

        from holdfast.commands.verification.checks import check
        from holdfast.commands.verification.log_source import VerificationError
        from holdfast.commands.verification.options import Options

    progress = Progress()
    try:
        options = Options(key, head, person, log, offline, mail_line, tuple(witness or ()), head_log, registration)
        report = asyncio.run(check(target, options, TerminalProgress(progress)))
    except (VerificationError, OSError) as error:
        progress.show("")
        if as_json:
            print_json({"ok": None, "error": str(error)})
        else:
            typer.echo(fitted(sentences(f"It could not be checked. {error}"), err=True), err=True)
        raise typer.Exit(2) from error
    progress.show("")
    if as_json:
        print_json(report.as_json())
    else:
        typer.echo("\n".join(report.lines()))
    if report.findings:
        raise typer.Exit(1)
