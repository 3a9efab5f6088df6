"""`holdfast verify`: checks the public log of an event or a queue, or a receipt. It trusts nothing but a key."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.commands.services import AsJson, print_json
from holdfast.kit.process.garbage_collection import importing

Target = Annotated[
    str,
    typer.Argument(
        metavar="URL|FILE",
        help="The address of a log (https://host/log/events/7), or of a page that links to it; a directory with a copy "
        "of a log; a receipt (JSON) or a .tlog-proof file.",
    ),
]


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
    as_json: AsJson = False,
) -> None:
    """Check that nobody jumped the line.

    Of a log: the signature of its head, the hashes of all entries, and that each outcome follows by the rules. Of a
    receipt: its signature, and that the log has the arrival. Exits with 0 if all is right, with 1 if something is
    wrong, and with 2 if it could not be checked.
    """
    with importing():
        import asyncio

        from holdfast.commands.progress import Progress
        from holdfast.commands.verification.checks import Options, check
        from holdfast.commands.verification.log_source import VerificationError

    progress, read_count = Progress(), 0

    def count(more: int, total: int) -> None:
        nonlocal read_count
        read_count += more
        progress.show(f"{read_count:,} of {total:,} entries")

    try:
        report = asyncio.run(check(target, Options(key, head, person, log, offline, mail_line), count))
    except (VerificationError, OSError) as error:
        progress.show("")
        if as_json:
            print_json({"ok": None, "error": str(error)})
        else:
            typer.echo(f"It could not be checked. {error}", err=True)
        raise typer.Exit(2) from error
    progress.show("")
    if as_json:
        print_json(report.as_json())
    else:
        typer.echo("\n".join(report.lines()))
    if report.findings:
        raise typer.Exit(1)
