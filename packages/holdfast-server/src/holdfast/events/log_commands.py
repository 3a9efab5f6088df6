"""The commands `holdfast events log …`."""

from pathlib import Path
from typing import Annotated

import typer

WITNESS_PORT = 8010

logs = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Public logs of the order.")


@logs.callback()
def _logs() -> None:  # pyright: ignore[reportUnusedFunction] - with one command alone, its name would be left out
    pass


@logs.command("witness")
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

    For a partner of a service. It needs no database and no settings. It cosigns a head of a log only if that continues
    the last head that it has cosigned, so nobody can show two different logs that both have its cosignature. It prints
    its own key, which the service and all who verify need. The key of a log is at /log/heads/key of the service. Keep
    the directory: a copy of it that is older than the last cosignature must never be used.
    """
    import sys

    import structlog
    import uvicorn

    from holdfast.events.log.witness.application import application
    from holdfast.events.log.witness.cosigning import Witness
    from holdfast.events.log.witness.directory import WitnessDirectory
    from holdfast.kit.http import sockets
    from holdfast.kit.process.serving import ServedService, serve
    from holdfast.kit.tlog.signed_note import Verifier

    lines = logs.read_text(encoding="utf-8").splitlines() if logs else []
    vkeys = [*(log or ()), *(key for line in lines if (key := line.partition("#")[0].strip()))]
    if not vkeys:
        raise typer.BadParameter("Give the key of at least one log, with --log or --logs.")
    try:
        keys = [Verifier(vkey) for vkey in vkeys]
    except ValueError as error:
        raise typer.BadParameter(f"The key of a log cannot be used: {error}") from error
    stored = WitnessDirectory(directory, name)
    listener = sockets.listen(host, port)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    typer.echo(f"The witness cosigns {', '.join(dict.fromkeys(key.name for key in keys))}.")
    typer.echo(f"It listens on {sockets.address_of(listener)}. Its key is:")
    typer.echo(stored.cosigner.vkey)
    app = application(Witness(stored, keys))
    serve([ServedService(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"), listener)])
