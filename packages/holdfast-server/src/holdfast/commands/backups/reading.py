"""Reading a backup, a directory or a tar file, and verifying that it is whole."""

import contextlib
import tarfile
from collections.abc import Generator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Protocol

import msgspec

from holdfast.commands.backups.manifest import FORMAT, MANIFEST, Manifest, dump_name
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres import dumps
from holdfast_verify.terminal import Progress

CHUNK_BYTES = 1024 * 1024


class BackupReader(Protocol):
    """Reads the files of a backup by their names."""

    place: Path

    def open(self, name: str) -> IO[bytes] | None:
        """A file; None if the backup does not have it."""
        ...


@contextlib.contextmanager
def open_backup(place: Path) -> Generator[BackupReader]:
    """A backup for as long as the block lasts. Raises `CannotStart` if there is none."""
    if place.is_dir():
        yield DirectoryReader(place)
        return
    try:
        archive = tarfile.open(place, "r:")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise CannotStart(f"There is no backup at {place}.") from error
    except tarfile.ReadError as error:
        raise CannotStart(f"{place} is not a backup: {error}.") from error
    with archive:
        yield TarReader(place, archive)


def read_manifest(reader: BackupReader) -> Manifest:
    """The manifest. Raises `CannotStart` if the backup has none, or one of a later program."""
    file = reader.open(MANIFEST)
    if file is None:
        raise CannotStart(
            f"{reader.place} has no {MANIFEST}: it is not a backup, or one that was interrupted. Use another one."
        )
    with file:
        text = file.read()
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CannotStart(f"The {MANIFEST} in {reader.place} cannot be read: {error}. Use another backup.") from error
    if manifest.format > FORMAT:
        raise CannotStart(
            f"The backup was made by Holdfast {manifest.version}, which writes another format. Install that version, "
            "or a newer one, and restore with it."
        )
    return manifest


def verify(reader: BackupReader, manifest: Manifest, progress: Progress) -> None:
    """Read every file again and compare its checksum; let `pg_restore` read every dump. Raises `CannotStart`."""
    with progress.phase("verifying", sum(record.bytes for record in manifest.files.values())) as count:
        for name, record in manifest.files.items():
            digest, size = sha256(), 0
            for chunk in chunks_of(reader, name):
                digest.update(chunk)
                size += len(chunk)
                count(len(chunk))
            if (size, digest.hexdigest()) != (record.bytes, record.sha256):
                raise CannotStart(f"{name} in {reader.place} is damaged: its checksum differs. Use another backup.")
    for service in manifest.services:
        dumps.require_readable(chunks_of(reader, dump_name(service)))


def chunks_of(reader: BackupReader, name: str) -> Iterator[bytes]:
    """The contents of a file of the backup, in chunks. Raises `CannotStart` if it is missing."""
    file = reader.open(name)
    if file is None:
        raise CannotStart(f"{name} is missing in {reader.place}. Use another backup.")
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


class DirectoryReader:
    """Reads a directory."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def open(self, name: str) -> IO[bytes] | None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return (self.place / name).open("rb")
        return None


class TarReader:
    """Reads a tar file without unpacking it."""

    def __init__(self, place: Path, archive: tarfile.TarFile) -> None:
        self.place = place
        self._archive = archive
        self._members: dict[str, tarfile.TarInfo] = {}
        # A tar file that was cut off lacks the manifest, which is its last file.
        with contextlib.suppress(tarfile.ReadError):
            self._members = {member.name: member for member in archive.getmembers()}

    def open(self, name: str) -> IO[bytes] | None:
        member = self._members.get(name)
        return self._archive.extractfile(member) if member else None
