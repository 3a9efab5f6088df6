"""`holdfast backup`: the databases, the photos and the secrets of both services, verified after writing."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.commands.backups.options import ServiceOption
from holdfast.kit.process.startup import importing
from holdfast_verify.terminal import fitted

if TYPE_CHECKING:
    from holdfast.commands.backups.archive import BackupWriter, Manifest, ServiceRecord
    from holdfast.commands.backups.photos import NamedPhoto
    from holdfast.commands.backups.services import Product
    from holdfast.kit.environment.settings import Settings
    from holdfast.kit.postgres.schema.dumps import Snapshot
    from holdfast_verify.terminal import Count, Progress

LATEST_BACKUPS = "backups.json"
"""The file of the data directory that says when each service was backed up last, and where to."""

MAX_LISTED_PHOTOS = 5
"""The most missing photos that are named."""

Place = Annotated[
    Path, typer.Argument(metavar="DIR|FILE", help="A new directory, or a new file if the name ends in .tar.")
]


def backup(place: Place, service: ServiceOption = None) -> None:
    """Copy everything of both services, and verify the copy.

    That is the databases, the photos and the secret keys. The services may run meanwhile, on the bundled PostgreSQL or
    on your own. What was acknowledged before the backup began is in it. Progress is written to standard error.

    The backup has the secret keys and all personal data: keep it as safely as the service. Other settings, such as
    the password for the mail server, are not in it. Mails that were written to files are not in it either, nor what
    the demo shops and demo payments of `holdfast up` have stored.
    """
    with importing():
        from holdfast.commands.backups.archive import new_writer, report_disk_errors
        from holdfast.commands.backups.services import products
        from holdfast_verify.terminal import Progress, size_text

    progress = Progress()
    sources = [(product, product.configured()) for product in products(service)]
    urls = {product.name: _existing_url(product, settings, service) for product, settings in sources}
    with report_disk_errors(place, "Nothing was left there."):
        writer = new_writer(place)
        try:
            manifest = _write(writer, sources, urls, progress)
            _publish(writer.place, place)
        except BaseException:
            writer.discard()
            raise
    _remember(sources[0][1].data_dir, manifest, place, progress)
    finished = (
        f"The backup {place} is finished and verified: {' and '.join(manifest.services)}, "
        f"{size_text(sum(record.bytes for record in manifest.files.values()))}. It has what was acknowledged before "
        f"{manifest.began_at:%Y-%m-%d %H:%M:%S} UTC, and the secret keys as plain text: keep it safe."
    )
    typer.echo(fitted(finished))
    if missing := [name for record in manifest.services.values() for name in record.missing_photos]:
        examples = ", ".join(missing[:MAX_LISTED_PHOTOS])
        lost = f"Events show photos that the store does not have: {len(missing)}, such as {examples}."
        typer.echo(fitted(lost, err=True), err=True)
        raise typer.Exit(1)


def _existing_url(product: "Product", settings: "Settings", service: str | None) -> str:
    """The URL of a database that exists. Raises `CannotStart`."""
    from holdfast.kit.contract.problems import CannotStart
    from holdfast.kit.process import database_location

    try:
        database_location.require_secret(settings, product.sealed)
        return database_location.existing_url(settings)
    except CannotStart as error:
        if service:
            raise
        other = "events" if product.name == "inventory" else "inventory"
        raise CannotStart(f"{error} To back up the other service alone, add: --service {other}") from error


def _write(
    writer: "BackupWriter",
    sources: "Sequence[tuple[Product, Settings]]",
    urls: Mapping[str, str],
    progress: "Progress",
) -> "Manifest":
    """Write and verify a backup under its temporary name."""
    from holdfast.commands.backups.archive import open_backup, read_manifest, secret_name, verify, write_manifest
    from holdfast.kit.process.resources import secret_file

    records: dict[str, ServiceRecord] = {}
    photos: list[NamedPhoto] = []
    # The databases come first. A photo that is not shown any more is kept for a day, so all that they name are there.
    for product, _ in sources:
        records[product.name] = _write_database(writer, product, urls[product.name], photos, progress)
    for product, settings in sources:
        if product.name == "events":
            records[product.name].missing_photos = _write_photos(writer, settings, photos, progress)
        secret = settings.secret_key
        if not secret and secret_file(settings).exists():
            secret = secret_file(settings).read_text(encoding="utf-8").strip()
        for text, is_old in ((secret, False), (settings.old_secret_key, True)):
            if text:
                writer.write(secret_name(product.name, old=is_old), [text.encode()])
    write_manifest(writer, min(record.began_at for record in records.values()), records)
    with open_backup(writer.place) as reader:
        manifest = read_manifest(reader)
        verify(reader, manifest, progress)
    return manifest


def _write_database(
    writer: "BackupWriter", product: "Product", url: str, photos: "list[NamedPhoto]", progress: "Progress"
) -> "ServiceRecord":
    """Write the dump of a database, and add the photos that it names to a list."""
    from holdfast.commands.backups.archive import ServiceRecord, dump_name
    from holdfast.commands.backups.photos import named_photos
    from holdfast.kit.postgres.schema.dumps import open_snapshot
    from holdfast.kit.postgres.schema.lineage import applied_migrations

    with open_snapshot(url) as snapshot, progress.phase(f"database of {product.name}") as count:
        writer.write(dump_name(product.name), _counted(_dump(snapshot), count))
        if product.name == "events":
            photos += named_photos(snapshot.connection)
        return ServiceRecord(
            snapshot.taken_at.astimezone(UTC),
            snapshot.server_version,
            list(applied_migrations(snapshot.connection)),
            snapshot.row_counts(),
        )


def _dump(snapshot: "Snapshot") -> Iterator[bytes]:
    return snapshot.dump("--format=custom", "--no-owner")


def _counted(chunks: Iterator[bytes], count: "Count") -> Iterator[bytes]:
    for chunk in chunks:
        count(len(chunk))
        yield chunk


def _write_photos(
    writer: "BackupWriter", settings: "Settings", photos: "Sequence[NamedPhoto]", progress: "Progress"
) -> list[str]:
    """Write the photos that the database names. Returns those that events show and the store does not have."""
    import asyncio

    from holdfast.commands.backups.photos import read_photos
    from holdfast.commands.backups.services import photo_store

    store = photo_store(settings)
    missing: set[str] = set()

    async def write(count: "Count") -> None:
        async for name, content in read_photos(store, [photo.name for photo in photos]):
            if content is None:
                missing.add(name)
            else:
                count(writer.write(name, [content]))

    with progress.phase(f"{len(photos):,} files of photos") as count:
        asyncio.run(write(count))
    return [photo.name for photo in photos if photo.is_shown and photo.name in missing]


def _publish(unfinished: Path, place: Path) -> None:
    """Give a backup its final name."""
    import os

    unfinished.rename(place)
    directory = os.open(place.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def _remember(data_dir: Path, manifest: "Manifest", place: Path, progress: "Progress") -> None:
    """Store in the data directory when each service was backed up last. A failure is only told."""
    import json
    import tempfile

    from holdfast_verify.terminal import iso_time

    file = data_dir / LATEST_BACKUPS
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        latest: dict[str, object] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        entry = {"finished_at": iso_time(manifest.finished_at), "place": str(place.resolve())}
        latest |= dict.fromkeys(manifest.services, entry)
        with tempfile.NamedTemporaryFile("w", dir=data_dir, delete=False) as fresh:
            json.dump(latest, fresh, indent=2)
        Path(fresh.name).chmod(0o644)  # root may make a backup, and the user of the services look at this
        Path(fresh.name).replace(file)
    except (OSError, ValueError) as error:
        progress.line(f"{file} cannot be written, so `holdfast check` does not know of this backup: {error}")
