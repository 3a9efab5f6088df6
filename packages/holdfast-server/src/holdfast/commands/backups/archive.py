"""Writing a backup: a directory, or one tar file. It has a temporary name until it is whole and was verified.

The manifest of a backup: what is in it, since when, and the checksum of every file.

Reading a backup, a directory or a tar file, and verifying that it is whole.
"""

import contextlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Protocol

import msgspec
from msgspec import Struct

from holdfast import __version__
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.schema import dumps
from holdfast_verify.terminal import Progress

FORMAT = 1
"""The version of the layout of a backup."""

MANIFEST = "manifest.json"
"""The name of its file, which is written last: without it, a backup is not whole."""


class FileRecord(Struct):
    """A file of the backup: its size in bytes, and its SHA-256 in hexadecimal."""

    bytes: int
    sha256: str


class ServiceRecord(Struct):
    """What the backup has of a service.

    began_at        a time of its database's clock: whatever was acknowledged before it is in the backup
    postgresql      the version of its server
    migrations      the names of the migrations that its database had
    rows            the number of rows of each table
    missing_photos  the names of photos that the database has and the store had not
    """

    began_at: datetime
    postgresql: str
    migrations: list[str]
    rows: dict[str, int]
    missing_photos: list[str] = []


class Manifest(Struct):
    """The contents of `manifest.json`.

    version   the version of Holdfast that made the backup
    services  what it has of each service, by its name
    files     its files, by their names
    """

    format: int
    version: str
    began_at: datetime
    finished_at: datetime
    services: Mapping[str, ServiceRecord]
    files: Mapping[str, FileRecord]


def dump_name(service: str) -> str:
    """The name of the file with the database of a service."""
    return f"{service}.dump"


def secret_name(service: str, *, old: bool = False) -> str:
    """The name of the file with the secret of a service, or with the one before its rotation."""
    return f"secrets/{service}.{'old_secret' if old else 'secret'}"


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


ARCHIVE_SUFFIXES = {".gz", ".tgz", ".zip", ".xz", ".zst", ".bz2", ".7z"}
"""Endings of files that a backup cannot be: what it has is compressed already."""


class BackupWriter(Protocol):
    """Writes the files of a backup under a temporary name.

    place    the temporary name
    files    what was written, by the name in the backup
    """

    place: Path
    files: dict[str, FileRecord]

    def write(self, name: str, chunks: Iterable[bytes]) -> int:
        """Write a file of the backup. Returns its size in bytes."""
        ...

    def close(self) -> None:
        """Let everything be on the disk."""
        ...

    def discard(self) -> None:
        """Remove everything that was written."""
        ...


def new_writer(final: Path) -> BackupWriter:
    """A writer for a backup: a tar file if its name ends in `.tar`, else a directory. Raises `CannotStart`."""
    if final.suffix in ARCHIVE_SUFFIXES:
        raise CannotStart(f"A backup is a directory or a file that ends in .tar. Give {final} another name.")
    if final.exists() and (final.is_file() or any(final.iterdir())):
        raise CannotStart(f"{final} exists already. A backup never replaces another one: give it another name.")
    final.parent.mkdir(parents=True, exist_ok=True)
    prefix = f"{final.name}.unfinished-"
    if final.suffix == ".tar":
        descriptor, name = tempfile.mkstemp(prefix=prefix, dir=final.parent)  # only its owner can read it
        return TarWriter(Path(name), os.fdopen(descriptor, "wb"))
    return DirectoryWriter(Path(tempfile.mkdtemp(prefix=prefix, dir=final.parent)))


def write_manifest(writer: BackupWriter, began_at: datetime, services: Mapping[str, ServiceRecord]) -> Manifest:
    """Write the manifest, the last file of a backup."""
    manifest = Manifest(FORMAT, __version__, began_at, datetime.now(UTC), services, dict(writer.files))
    writer.write(MANIFEST, [msgspec.json.format(msgspec.json.encode(manifest))])
    writer.close()
    return manifest


@contextlib.contextmanager
def report_disk_errors(place: Path, consequence: str) -> Generator[None]:
    """Raise `CannotStart` if a disk is full, or if this user may not read or write a file.

    place         what is read or written
    consequence   a sentence on what this leaves behind
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotStart(
            f"{error.filename or place} cannot be read or written: {reason}. {consequence} Start again with enough "
            "room, and as a user who may read and write it."
        ) from error


class DirectoryWriter:
    """Writes a directory. Only its owner can read it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.files: dict[str, FileRecord] = {}

    def write(self, name: str, chunks: Iterable[bytes]) -> int:
        path = self.place / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
            self.files[name] = record = _copy(chunks, file.write)
        return record.bytes

    def close(self) -> None:
        os.sync()

    def discard(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)


class TarWriter:
    """Writes a tar file. The size of a file need not be known before: its header is written when it has ended."""

    def __init__(self, place: Path, file: IO[bytes]) -> None:
        self.place = place
        self.files: dict[str, FileRecord] = {}
        self._file = file

    def write(self, name: str, chunks: Iterable[bytes]) -> int:
        start = self._file.tell()
        self._file.write(bytes(tarfile.BLOCKSIZE))
        self.files[name] = record = _copy(chunks, self._file.write)
        self._file.write(bytes(-record.bytes % tarfile.BLOCKSIZE))
        end = self._file.tell()
        header = tarfile.TarInfo(name)
        header.size, header.mode, header.mtime = record.bytes, 0o600, int(datetime.now(UTC).timestamp())
        # This format has sizes of any length in a header of one block.
        block = header.tobuf(tarfile.GNU_FORMAT)
        assert len(block) == tarfile.BLOCKSIZE, f"the name {name} is too long"
        self._file.seek(start)
        self._file.write(block)
        self._file.seek(end)
        return record.bytes

    def close(self) -> None:
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # the disk is full, and some of it was not written yet
            self._file.close()
        self.place.unlink(missing_ok=True)


def _copy(chunks: Iterable[bytes], write: Callable[[bytes], object]) -> FileRecord:
    digest, size = sha256(), 0
    for chunk in chunks:
        write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return FileRecord(size, digest.hexdigest())
