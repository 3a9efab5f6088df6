"""The commands `holdfast backup`, `restore` and `move`. Their work is imported when one runs."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.commands.services import ServiceOption
from holdfast.kit.process.startup import importing

Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The empty database for this service, as postgresql://user:password@host/name."),
]


def backup(
    path: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="A new directory, or a new file if the name ends in .tar.")
    ],
    service: ServiceOption = None,
) -> None:
    """Copy everything of both services, and verify the copy.

    That is the databases, the photos and the secret keys: keep the copy as safely as the service. The services may
    run. What was acknowledged before the backup began is in it. Progress is written to standard error.

    Other settings, such as the password for the mail server, are not in it, nor mails that were written to files.
    """
    with importing():
        from holdfast.commands.backups.backup import back_up

    back_up(path, service)


def restore(
    path: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="What `holdfast backup` has written.")],
    service: ServiceOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Verify the backup, say what would be done, and change nothing.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove what the databases have now. Asks before it does.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Put a backup back, where the settings say.

    The databases go into the bundled PostgreSQL, or where EVENTS_DATABASE_URL and INVENTORY_DATABASE_URL say; photos
    and secret keys go into the data directory, or photos into the bucket. The databases must be empty, unless --replace
    is given. The command first says what goes where. The backup is verified, and the rows of every table are counted
    afterwards.
    """
    with importing():
        from holdfast.commands.backups.restore import restore_backup

    restore_backup(path, service, dry_run=dry_run, replace=replace, yes=yes)


def move(inventory: Url = None, events: Url = None) -> None:
    """Copy the bundled databases to a server of your own.

    The server has to be PostgreSQL 15 to 18. Give a URL for each service that moves. Stop the services first. The rows
    of every table are counted in both databases. What is in the data directory stays as it was, and photos stay in
    use there.

    The settings to write are printed on standard output, also the secret keys, and everything else on standard error.
    """
    if not (inventory or events):
        raise typer.BadParameter("Give --inventory URL, --events URL, or both.")
    with importing():
        from holdfast.commands.backups.move import move_databases

    move_databases({"inventory": inventory, "events": events})
