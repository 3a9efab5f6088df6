"""`holdfast restore`: a backup into empty databases, with its photos and secrets."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import typer

from holdfast.commands.backups import archive
from holdfast.commands.backups.archive import Backup, ServiceRecord, count_chunks, dump_name, open_backup, secret_name
from holdfast.commands.backups.photos import is_photo, write_photos
from holdfast.commands.services import ServiceName, services
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.schema import dumps
from holdfast.kit.postgres.schema.lineage import BASELINE
from holdfast.kit.process import database_location
from holdfast.kit.process.resources import existing_secret, secret_file
from holdfast.kit.process.service_process import ServiceProcess
from holdfast_verify.terminal import Progress, fitted


@dataclass(frozen=True)
class Target:
    """Where one service is restored.

    url           its database; None if it is the bundled one, and not made yet
    secret        the secret in the backup; empty if it has none
    old_secret    the secret before its rotation, in the backup
    is_filled     whether the database has tables
    location      the database, its server and the setting that names it, in words
    """

    name: str
    process: ServiceProcess[Any, Any]
    settings: Any
    record: ServiceRecord
    url: str | None
    secret: str
    old_secret: str
    is_filled: bool
    location: str

    @property
    def writes_secret(self) -> bool:
        """Whether the secret goes into the data directory: the service looks for it there, and it has another one."""
        is_of_file = not self.settings.secret_key and not self.settings.database_url
        return is_of_file and self.secret not in ("", existing_secret(self.settings))

    def plan(self, path: Path, *, replace: bool) -> Iterator[str]:
        """What a restore does, in sentences."""
        contents = "is empty"
        if self.is_filled and replace:
            contents = "is not empty: what it has is removed"
        elif self.is_filled:
            contents = "is not empty: it is refused, unless --replace removes what it has"
        moment = f"{self.record.began_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        yield f"{sum(self.record.rows.values()):,} rows of {moment} go to {self.location}. The database {contents}."
        if self.name == "events":
            bucket, media = self.settings.s3_bucket, self.settings.data_dir / "media"
            yield f"photos go to {f'the bucket {bucket}' if bucket else f'the directory {media.resolve()}'}."
        if self.writes_secret:
            yield f"its secret key goes to {secret_file(self.settings).resolve()}."
        yield from self.missing_secrets(path)

    def missing_secrets(self, path: Path) -> Iterator[str]:
        """The secret keys that the settings must have before the service starts, and where the backup has them."""
        variable = self.settings.variable
        if self.settings.database_url and not self.settings.secret_key:
            yield f"Set {variable('secret_key')} to the text in {secret_name(self.name)} of {path}."
        if self.old_secret and not self.settings.old_secret_key:
            old = f"{secret_name(self.name, old=True)} of {path}"
            yield f"Set {variable('old_secret_key')} to the text in {old}: the secret key was being rotated."

    def require_secret(self, *, replace: bool) -> None:
        """Raise `CannotStart` if the service would not be able to read what is restored."""
        settings, variable = self.settings, self.settings.variable("secret_key")
        if self.secret and settings.secret_key and self.secret not in (settings.secret_key, settings.old_secret_key):
            raise CannotStart(
                f"{variable} is another secret key than that of the backup, which alone opens what it has. Set "
                f"{variable} to the text in {secret_name(self.name)} of the backup, and start again."
            )
        if self.writes_secret and existing_secret(settings) and not replace:
            raise CannotStart(
                f"{secret_file(settings).resolve()} is another secret key than that of the backup. If nothing "
                "needs it any more, move the file away, or restore with --replace, which keeps it beside the new one."
            )

    def require_room(self, *, replace: bool) -> None:
        """Raise `CannotStart` if the database must stay as it is, or if a service uses it."""
        if not self.url or not self.is_filled:
            return
        if not replace:
            raise CannotStart(
                f"The database of {self.name} is not empty. Restore into an empty one, or use --replace, which removes "
                "what it has."
            )
        with dumps.session(self.url) as connection:
            dumps.require_stopped(connection, self.name)

    def write_photos(self, backup: Backup, progress: Progress) -> None:
        """Write the photos of the backup to the store, if the service has photos."""
        sizes = {name: record.bytes for name, record in backup.manifest.files.items() if is_photo(name)}
        if self.name != "events" or not sizes:
            return
        with progress.phase(f"{len(sizes):,} files of photos", sum(sizes.values())) as count:
            photos = ((name, b"".join(count_chunks(backup.chunks(name), count))) for name in sizes)
            asyncio.run(write_photos(self.settings, photos))

    def write_secret(self) -> None:
        """Put the secret into the data directory, if that is where the service looks for it."""
        if not self.writes_secret:
            return
        file = secret_file(self.settings)
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            file.rename(file.with_name(f"{file.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S}"))
        with NamedTemporaryFile("w", dir=file.parent, delete=False) as fresh:  # only its owner can read it
            fresh.write(self.secret)
        Path(fresh.name).rename(file)

    def write_database(self, backup: Backup, progress: Progress) -> None:
        """Fill the database in one transaction. Raises `CannotStart`."""
        url = self.url or database_location.url(self.settings)
        with progress.phase(f"database of {self.name}") as count:
            statements = dumps.script(count_chunks(backup.chunks(dump_name(self.name)), count))
            dumps.fill(url, self.name, statements, self.record.rows, replace=self.is_filled)
        with dumps.session(url) as connection:
            self.process.after_restore(connection)

    def next_steps(self, path: Path) -> Iterator[str]:
        """What an operator does after the restore."""
        yield from self.missing_secrets(path)
        if self.process.pending(self.url or database_location.url(self.settings)):
            bundled_words = "" if self.settings.database_url else "The next start of the service does it too. "
            yield f"The schema is older than this version. {bundled_words}Run: holdfast {self.name} migrate"


def restore_backup(path: Path, service: ServiceName | None, *, dry_run: bool, replace: bool, yes: bool) -> None:
    """Restore the services that a backup has. Changes nothing before all of it was verified. Raises `CannotStart`."""
    progress = Progress()
    with archive.report_disk_errors(path, "The restore did not finish."), open_backup(path) as backup:
        if service and service not in backup.manifest.services:
            raise CannotStart(f"The backup {path} does not have the {service} service.")
        targets = [
            _target(backup, process, record, replace=replace)
            for process in services(service)
            if (record := backup.manifest.services.get(process.name))
        ]
        for target in targets:
            for sentence in target.plan(path, replace=replace):
                typer.echo(fitted(f"{target.name}: {sentence}"))
        if not dry_run:
            for target in targets:
                target.require_room(replace=replace)
        backup.verify(progress)
        if dry_run:
            typer.echo("Nothing was changed.")
            return
        if not yes and any(target.is_filled for target in targets):
            typer.confirm("What these databases have now will be gone. Go on?", abort=True)
        # Again: a service may have started since.
        for target in targets:
            target.require_room(replace=replace)
        for target in targets:
            target.write_photos(backup, progress)
        for target in targets:
            target.write_secret()
        for target in targets:
            target.write_database(backup, progress)
    began_at = f"{backup.manifest.began_at.astimezone(UTC):%Y-%m-%d %H:%M}"
    typer.echo(fitted(f"Restored, and every table has as many rows as in the backup of {began_at} UTC."))
    typer.echo("Next:")
    after_restore = 'Read "After a restore" in docs/backup.md: on keys, mails and people who were erased since.'
    for sentence in (*(step for target in targets for step in target.next_steps(path)), after_restore):
        typer.echo(fitted(f"  {sentence}", indent="  "))


def _target(backup: Backup, process: ServiceProcess[Any, Any], record: ServiceRecord, *, replace: bool) -> Target:
    """Where a service is restored. Changes nothing. Raises `CannotStart` for what stands in the way."""
    if later := _later_migrations(process, record.migrations):
        raise CannotStart(
            f"The backup was made by Holdfast {backup.manifest.version}, which is newer: this version does not know "
            f"{', '.join(later)}. Install that version, or a newer one, and restore with it."
        )
    settings = process.configured()
    if settings.database_url:
        url = database_location.existing_url(settings)
    else:
        with database_location.report_unusable_directory(settings.data_dir):
            url = bundled.existing_database_url(settings.data_dir, settings.service)
    secrets = [backup.text(secret_name(process.name, old=is_old)) for is_old in (False, True)]
    is_filled, location = False, database_location.location_text(settings)
    if url:
        with dumps.session(url) as connection:
            dumps.require_supported_version(connection)
            is_filled = not dumps.is_empty(connection)
            if settings.database_url:
                location = f"{dumps.location_text(connection)} ({settings.variable('database_url')})"
    target = Target(process.name, process, settings, record, url, *secrets, is_filled=is_filled, location=location)
    target.require_secret(replace=replace)
    return target


def _later_migrations(process: ServiceProcess[Any, Any], applied: Sequence[str]) -> list[str]:
    """The migrations of a database that this version of the program does not know."""
    schema = process.schema()
    known_names = {migration.name for migration in schema}
    unknown = [name for name in applied if name not in known_names and name.endswith(".sql")]
    baselines = [match for migration in schema if (match := BASELINE.match(migration.sql))]
    # A baseline replaces earlier migrations: a database that has the last of them is older, and not newer.
    return [] if any(baseline["last"] in unknown for baseline in baselines) else unknown
