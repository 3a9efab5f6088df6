"""Writing a backup: a directory, or one tar file. It has a temporary name until it is whole and was verified."""

import contextlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Protocol

import msgspec

from holdfast import __version__
from holdfast.commands.backups.manifest import FORMAT, MANIFEST, FileRecord, Manifest, ServiceRecord
from holdfast.kit.contract.problems import CannotStart

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
