"""What a restore does with one service: where its database and its secret go, and what stands in the way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from holdfast.commands.backups.archive import BackupReader, Manifest, ServiceRecord, chunks_of, dump_name, secret_name
from holdfast.commands.backups.photos import place_text
from holdfast.commands.backups.services import (
    Product,
    later_migrations,
    prepare_server,
    products,
    require_same_rows,
    require_stopped,
)
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.schema import dumps
from holdfast.kit.process import database_location
from holdfast.kit.process.resources import secret_file
from holdfast_verify.terminal import Progress


@dataclass(frozen=True)
class Target:
    """Where one service is restored.

    url           its database; None if it is the bundled one, and not made yet
    secret        the secret in the backup; empty if it has none
    old_secret    the secret before its rotation, in the backup
    is_filled     whether the database has tables
    location      the database, its server and the setting that names it, in words
    """

    product: Product
    settings: Any
    record: ServiceRecord
    url: str | None
    secret: str
    old_secret: str
    is_filled: bool
    location: str

    def plan(self, place: Path, *, replace: bool) -> Iterator[str]:
        """What a restore does, in sentences."""
        name, rows = self.product.name, sum(self.record.rows.values())
        contents = "is empty"
        if self.is_filled:
            contents = "is not empty: " + (
                "what it has is removed" if replace else "it is refused, unless --replace removes what it has"
            )
        moment = f"{self.record.began_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        yield f"{name}: {rows:,} rows of {moment} go to {self.location}. The database {contents}."
        if name == "events":
            yield f"{name}: photos go to {place_text(self.settings)}."
        if self._writes_secret():
            yield f"{name}: its secret key goes to {secret_file(self.settings).resolve()}."
        for sentence in self._missing_secrets(place):
            yield f"{name}: {sentence}"

    def require_room(self, *, replace: bool) -> None:
        """Raise `CannotStart` if the database must stay as it is, or if a service uses it."""
        if not self.url or not self.is_filled:
            return
        name = self.product.name
        if not replace:
            raise CannotStart(
                f"The database of {name} is not empty. Restore into an empty one, or use --replace, which removes what "
                "it has."
            )
        with dumps.report_database_errors(), dumps.connect(self.url) as connection:
            require_stopped(connection, name)

    def require_secret(self, *, replace: bool) -> None:
        """Raise `CannotStart` if the service would not be able to read what is restored."""
        name, variable = self.product.name, self.settings.variable("secret_key")
        if not self.secret:
            return
        if self.settings.secret_key:
            if self.secret not in (self.settings.secret_key, self.settings.old_secret_key):
                raise CannotStart(
                    f"{variable} is another secret key than that of the backup, which alone opens what it has. Set "
                    f"{variable} to the text in {secret_name(name)} of the backup, and start again."
                )
        elif not self.settings.database_url and self._present_secret() not in ("", self.secret) and not replace:
            raise CannotStart(
                f"{secret_file(self.settings).resolve()} is another secret key than that of the backup. If nothing "
                "needs it any more, move the file away, or restore with --replace, which keeps it beside the new one."
            )

    def restore_secret(self) -> None:
        """Put the secret into the data directory, if that is where the service looks for it."""
        if not self._writes_secret():
            return
        file = secret_file(self.settings)
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            file.rename(file.with_name(f"{file.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S}"))
        with NamedTemporaryFile("w", dir=file.parent, delete=False) as fresh:  # only its owner can read it
            fresh.write(self.secret)
        Path(fresh.name).rename(file)

    def restore_database(self, reader: BackupReader, progress: Progress) -> None:
        """Fill the database in one transaction, and count its rows. Raises `CannotStart`."""
        name = self.product.name
        url = self.url or database_location.url(self.settings)
        file = dump_name(name)
        with dumps.report_database_errors(), dumps.connect(url) as connection:
            prepare_server(connection, name)
        with progress.phase(f"database of {name}") as count:

            def archive() -> Iterator[bytes]:
                for chunk in chunks_of(reader, file):
                    count(len(chunk))
                    yield chunk

            dumps.load(url, dumps.script(archive()), replace=self.is_filled)
        with dumps.report_database_errors(), dumps.connect(url) as connection:
            require_same_rows(connection, self.record.rows)
            self.product.after_restore(connection)

    def next_steps(self, place: Path) -> Iterator[str]:
        """What an operator does after the restore."""
        name = self.product.name
        yield from self._missing_secrets(place)
        if self.product.pending(self.url or database_location.url(self.settings)):
            bundled_words = "" if self.settings.database_url else "The next start of the service does it too. "
            yield f"The schema is older than this version. {bundled_words}Run: holdfast {name} migrate"

    def _missing_secrets(self, place: Path) -> Iterator[str]:
        """The secret keys that the settings must have before the service starts, and where the backup has them."""
        name = self.product.name
        if self.settings.database_url and not self.settings.secret_key:
            yield f"Set {self.settings.variable('secret_key')} to the text in {secret_name(name)} of {place}."
        if self.old_secret and not self.settings.old_secret_key:
            old = secret_name(name, old=True)
            variable = self.settings.variable("old_secret_key")
            yield f"Set {variable} to the text in {old} of {place}: the secret key was being rotated."

    def _writes_secret(self) -> bool:
        is_wanted = self.secret and not self.settings.secret_key and not self.settings.database_url
        return bool(is_wanted) and self._present_secret() != self.secret

    def _present_secret(self) -> str:
        file = secret_file(self.settings)
        return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def find_targets(reader: BackupReader, manifest: Manifest, service: str | None, *, replace: bool) -> Sequence[Target]:
    """Where the services of a backup are restored. Changes nothing. Raises `CannotStart` for what stands in the way.

    service    the only service to restore; None for all that the backup has
    """
    targets: list[Target] = []
    for product in products(service):
        record = manifest.services.get(product.name)
        if record is None:
            continue
        if later := later_migrations(product, record.migrations):
            raise CannotStart(
                f"The backup was made by Holdfast {manifest.version}, which is newer: this version does not know "
                f"{', '.join(later)}. Install that version, or a newer one, and restore with it."
            )
        settings = product.configured()
        url = _url(settings)
        secrets = [_text(reader, manifest, secret_name(product.name, old=is_old)) for is_old in (False, True)]
        location = database_location.location_text(settings)
        is_filled = False
        if url:
            with dumps.report_database_errors(), dumps.connect(url) as connection:
                dumps.require_supported_version(connection)
                is_filled = not dumps.is_empty(connection)
                if settings.database_url:
                    location = f"{dumps.location_text(connection)} ({settings.variable('database_url')})"
        target = Target(product, settings, record, url, *secrets, is_filled=is_filled, location=location)
        target.require_secret(replace=replace)
        targets.append(target)
    return targets


def _url(settings: Any) -> str | None:
    """The URL of the database; None if it is the bundled one, and not made yet."""
    if settings.database_url:
        return database_location.existing_url(settings)
    with database_location.report_unusable_directory(settings.data_dir):
        return bundled.existing_database_url(settings.data_dir, settings.service)


def _text(reader: BackupReader, manifest: Manifest, name: str) -> str:
    """The contents of a small file of the backup; empty if it does not have the file."""
    return b"".join(chunks_of(reader, name)).decode() if name in manifest.files else ""
