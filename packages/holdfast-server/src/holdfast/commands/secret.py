"""`holdfast secret`: makes secrets for the settings."""

import typer

LENGTH_BYTES = 48
"""The bytes of a new secret: 64 characters of letters, digits, - and _."""

secret = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Secrets for the settings.")


@secret.callback()
def main() -> None:
    """Secrets for the settings."""


@secret.command()
def new() -> None:
    """Print a new random secret, alone on the last line.

    It fits EVENTS_SECRET_KEY, INVENTORY_SECRET_KEY and METRICS_TOKEN. Nothing is stored.
    """
    import secrets

    from holdfast_verify.terminal import fitted

    advice = (
        "Give each service a secret of its own, the same for all its processes: set EVENTS_SECRET_KEY or "
        "INVENTORY_SECRET_KEY to it, and keep a copy where your backups are not. docs/deploy/secrets.md says how to "
        "replace one that is in use."
    )
    typer.echo(fitted(advice, err=True), err=True)
    typer.echo(secrets.token_urlsafe(LENGTH_BYTES))
