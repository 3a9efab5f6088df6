"""The command `holdfast-verify`: checks a public log or a receipt, or runs a witness. It needs no service of ours.

The server has both commands too: `holdfast verify` and `holdfast events log witness`.
"""

from pathlib import Path
from typing import Annotated

import typer

from holdfast_verify.terminal import AsJson, Progress, fitted, print_json, sentences

WITNESS_PORT = 8010

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
    """Check that the public order was kept.

    For a log, it checks the signature of its head, the hashes of all entries, that each outcome follows by the rules,
    and that the head log of the service has the head; it reads earlier logs of the same event too. For a receipt, it
    checks the signature, that the log has the arrival, and what came later. It says at the end what was not checked.
    Exits with 0 if all that was checked is right, with 1 if something is wrong or not proved, and with 2 if it could
    not be checked.
    """
    import asyncio

    from holdfast_verify.check.checks import check
    from holdfast_verify.check.log_source import VerificationError
    from holdfast_verify.check.options import Options

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


def witness(
    name: Annotated[str, typer.Option(metavar="NAME", help="Its name, such as witness.example.org/w1, for good.")],
    log: Annotated[
        list[str] | None, typer.Option(metavar="VKEY", help="The key of a log to cosign; may be given again.")
    ] = None,
    logs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with such keys, one a line; # begins a comment.")
    ] = None,
    directory: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where it keeps its key and what it has cosigned.")
    ] = Path("witness"),
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = WITNESS_PORT,
) -> None:
    """Cosign the logs of others, as a witness.

    It needs no database and no settings. It cosigns a head of a log only if that continues the last head that it has
    cosigned. It prints its own key, which the service and all who verify need. Keep the directory: a copy of it that
    is older than the last cosignature must never be used.
    """
    import socket
    import sys

    from holdfast_verify.formats.signed_note import Verifier

    try:
        import structlog
        import uvicorn

        from holdfast_verify.witness import Witness, WitnessDirectory, WitnessError, application
    except ModuleNotFoundError as error:
        text = f"A witness needs the package {error.name}. Install holdfast-verify with the extra `witness`."
        typer.echo(fitted(text, err=True), err=True)
        raise typer.Exit(1) from error

    lines = logs.read_text(encoding="utf-8").splitlines() if logs else []
    vkeys = [*(log or ()), *(key for line in lines if (key := line.partition("#")[0].strip()))]
    if not vkeys:
        raise typer.BadParameter("Give the key of at least one log, with --log or --logs.")
    try:
        keys = [Verifier(vkey) for vkey in vkeys]
    except ValueError as error:
        raise typer.BadParameter(f"The key of a log cannot be used: {error}") from error
    try:
        witness_directory = WitnessDirectory(directory, name)
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except WitnessError as error:
        typer.echo(fitted(str(error), err=True), err=True)
        raise typer.Exit(1) from error
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a port is a number from 0 to 65535"
        text = f"Cannot listen on {host} port {port}: {reason}. Choose another address or port."
        typer.echo(fitted(text, err=True), err=True)
        raise typer.Exit(1) from error
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    address, free_port = listener.getsockname()[:2]
    typer.echo(f"The witness cosigns {', '.join(dict.fromkeys(key.name for key in keys))}.")
    typer.echo(f"It listens on http://{f'[{address}]' if ':' in address else address}:{free_port}. Its key is:")
    typer.echo(witness_directory.cosigner.vkey)
    app = application(Witness(witness_directory, keys))
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none")).run(sockets=[listener])


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Check public logs of Holdfast, and cosign them.",
)
app.command("check")(verify)
app.command("witness")(witness)

if __name__ == "__main__":
    app()
