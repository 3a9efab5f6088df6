"""`holdfast restore`: a backup into empty databases, with its photos and secrets."""

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.commands.backups.options import ServiceOption
from holdfast.kit.process.startup import importing
from holdfast_verify.terminal import fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.commands.backups.archive import BackupReader, Manifest
    from holdfast.commands.backups.restoring import Target
    from holdfast_verify.terminal import Progress


def restore(
    place: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="What `holdfast backup` has written.")],
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
        from holdfast.commands.backups.archive import open_backup, read_manifest, report_disk_errors, verify
        from holdfast.commands.backups.restoring import find_targets
        from holdfast.kit.contract.problems import CannotStart
        from holdfast_verify.terminal import Progress

    progress = Progress()
    with report_disk_errors(place, "The restore did not finish."), open_backup(place) as reader:
        manifest = read_manifest(reader)
        if service and service not in manifest.services:
            raise CannotStart(f"The backup {place} does not have the {service} service.")
        targets = find_targets(reader, manifest, service, replace=replace)
        for target in targets:
            for sentence in target.plan(place, replace=replace):
                typer.echo(fitted(sentence))
        if not dry_run:
            for target in targets:
                target.require_room(replace=replace)
        verify(reader, manifest, progress)
        if dry_run:
            typer.echo("Nothing was changed.")
            return
        if not yes and any(target.is_filled for target in targets):
            typer.confirm("What these databases have now will be gone. Go on?", abort=True)
        # Again: a service may have started since.
        for target in targets:
            target.require_room(replace=replace)
        _restore_photos(reader, manifest, targets, progress)
        for target in targets:
            target.restore_secret()
        for target in targets:
            target.restore_database(reader, progress)
    began_at = f"{manifest.began_at.astimezone(UTC):%Y-%m-%d %H:%M}"
    typer.echo(fitted(f"Restored, and every table has as many rows as in the backup of {began_at} UTC."))
    typer.echo("Next:")
    for target in targets:
        for sentence in target.next_steps(place):
            typer.echo(fitted(f"  {sentence}", indent="  "))
    more = '  Read "After a restore" in docs/backup.md: on keys, mails and people who were erased since.'
    typer.echo(fitted(more, indent="  "))


def _restore_photos(
    reader: "BackupReader", manifest: "Manifest", targets: "Sequence[Target]", progress: "Progress"
) -> None:
    """Write the photos of the backup to the store of the events service, if that is restored."""
    import asyncio

    from holdfast.commands.backups.photos import is_photo, write_photos
    from holdfast.commands.backups.services import photo_store

    settings = next((target.settings for target in targets if target.product.name == "events"), None)
    names = [name for name in manifest.files if is_photo(name)]
    if settings is None or not names:
        return
    with progress.phase(f"{len(names):,} files of photos", sum(manifest.files[name].bytes for name in names)) as count:

        def photos() -> "Iterator[tuple[str, bytes]]":
            from holdfast.commands.backups.archive import chunks_of

            for name in names:
                content = b"".join(chunks_of(reader, name))
                count(len(content))
                yield name, content

        asyncio.run(write_photos(photo_store(settings), photos()))
