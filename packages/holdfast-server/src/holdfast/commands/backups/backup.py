"""`holdfast backup`: the databases, the photos and the secrets of both services, verified after writing."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import typer

from holdfast.commands.backups import archive
from holdfast.commands.backups.archive import count_chunks
from holdfast.commands.backups.photos import named_photos, read_photos
from holdfast.commands.services import ServiceName, services
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.schema import dumps
from holdfast.kit.postgres.schema.lineage import applied_migrations
from holdfast.kit.process import database_location
from holdfast.kit.process.checks.files import BACKUPS_FILE
from holdfast.kit.process.resources import existing_secret
from holdfast.kit.process.service_process import ServiceProcess
from holdfast_verify.terminal import Progress, fitted, iso_time, size_text

MAX_LISTED_PHOTOS = 5
"""The most missing photos that are named."""


def back_up(path: Path, service: ServiceName | None) -> None:
    """Write a backup of the services, and say what is in it."""
    progress = Progress()
    configured = [(process, process.configured()) for process in services(service)]
    sources = [(process, settings, _existing_url(process, settings, service)) for process, settings in configured]
    with archive.report_disk_errors(path, "Nothing was left there."), archive.new_backup(path, progress) as writer:
        manifest = writer.manifest
        photos: dict[str, bool] = {}
        # The databases come first. A photo that is not shown any more is kept for a day, so all they name are there.
        for process, _, url in sources:
            with dumps.open_snapshot(url) as snapshot, progress.phase(f"database of {process.name}") as count:
                writer.write(archive.dump_name(process.name), count_chunks(snapshot.dump("custom"), count))
                if process.name == "events":
                    photos = named_photos(snapshot.connection)
                manifest.services[process.name] = archive.ServiceRecord(
                    snapshot.created_at.astimezone(UTC),
                    dumps.version_text(snapshot.connection),
                    list(applied_migrations(snapshot.connection)),
                    dumps.row_counts(snapshot.connection),
                )
        for process, settings, _ in sources:
            if process.name == "events":
                manifest.services["events"].missing_photos = _write_photos(writer, settings, photos, progress)
            for text, is_old in ((existing_secret(settings), False), (settings.old_secret_key, True)):
                if text:
                    writer.write(archive.secret_name(process.name, old=is_old), [text.encode()])
    _store_latest(configured[0][1].data_dir, manifest, path, progress)
    size = sum(record.bytes for record in manifest.files.values())
    finished = (
        f"The backup {path} is finished and verified: {' and '.join(manifest.services)}, {size_text(size)}. It has "
        f"what was acknowledged before {manifest.began_at:%Y-%m-%d %H:%M:%S} UTC, and the secret keys as plain text: "
        "keep it safe."
    )
    typer.echo(fitted(finished))
    if missing_photos := [name for record in manifest.services.values() for name in record.missing_photos]:
        examples = ", ".join(missing_photos[:MAX_LISTED_PHOTOS])
        lost = f"Events show photos that the store does not have: {len(missing_photos)}, such as {examples}."
        typer.echo(fitted(lost, err=True), err=True)
        raise typer.Exit(1)


def _existing_url(process: ServiceProcess[Any, Any], settings: Any, service: ServiceName | None) -> str:
    """The URL of a database that exists. Raises `CannotStart`."""
    try:
        database_location.require_secret(settings, process.sealed)
        return database_location.existing_url(settings)
    except CannotStart as error:
        if service:
            raise
        [other] = {*ServiceName} - {process.name}
        raise CannotStart(f"{error} To back up the other service alone, add: --service {other}") from error


def _write_photos(
    writer: archive.BackupWriter, settings: Settings, photos: Mapping[str, bool], progress: Progress
) -> list[str]:
    """Write the photos that the database names. Returns those that events show and the store does not have."""
    missing_photos: list[str] = []
    with progress.phase(f"{len(photos):,} files of photos") as count:

        async def write() -> None:
            async for name, content in read_photos(settings, photos):
                if content is not None:
                    writer.write(name, count_chunks([content], count))
                elif photos[name]:
                    missing_photos.append(name)

        asyncio.run(write())
    return missing_photos


def _store_latest(data_dir: Path, manifest: archive.Manifest, path: Path, progress: Progress) -> None:
    """Store in the data directory when each service was backed up last. A failure is only told."""
    file = data_dir / BACKUPS_FILE
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        latest: dict[str, object] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        entry = {"finished_at": iso_time(manifest.finished_at), "place": str(path.resolve())}
        latest |= dict.fromkeys(manifest.services, entry)
        with NamedTemporaryFile("w", dir=data_dir, delete=False) as fresh:
            json.dump(latest, fresh, indent=2)
        Path(fresh.name).chmod(0o644)  # root may make a backup, and the user of the services look at this
        Path(fresh.name).replace(file)
    except (OSError, ValueError) as error:
        progress.line(f"{file} cannot be written, so `holdfast check` does not know of this backup: {error}")
