"""The files of a backup: a directory, or one tar file.

It has a temporary name until it is whole and was verified. The last file, `manifest.json`, says what is in it, since
when, and the checksum of every other file.
"""

import contextlib
import os
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, cast

import msgspec
from msgspec import Struct

from holdfast import __version__
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.schema import dumps
from holdfast_verify.terminal import Count, Progress

FORMAT = 1
"""The version of the layout of a backup."""

MANIFEST = "manifest.json"

MISSING_FILE = (FileNotFoundError, NotADirectoryError, KeyError)
"""What is raised where a directory or a tar file does not have a file."""

COMPRESSED_SUFFIXES = {".gz", ".tgz", ".zip", ".xz", ".zst", ".bz2", ".7z"}
"""Endings of files that a backup cannot be: what it has is compressed already."""


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
    services: dict[str, ServiceRecord]
    files: dict[str, FileRecord]


def dump_name(service: str) -> str:
    return f"{service}.dump"


def secret_name(service: str, *, old: bool = False) -> str:
    """The name of the file with the secret of a service, or with the one before its rotation."""
    return f"secrets/{service}.{'old_secret' if old else 'secret'}"


def count_chunks(chunks: Iterable[bytes], count: Count) -> Iterator[bytes]:
    """The chunks, whose bytes are counted as progress."""
    for chunk in chunks:
        count(len(chunk))
        yield chunk


@contextlib.contextmanager
def report_disk_errors(path: Path, consequence: str) -> Generator[None]:
    """Raise `CannotStart` if a disk is full, or if this user may not read or write a file.

    path          what is read or written
    consequence   a sentence on what this leaves behind
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotStart(
            f"{error.filename or path} cannot be read or written: {reason}. {consequence} Start again with enough "
            "room, and as a user who may read and write it."
        ) from error


class Backup:
    """A backup that is read. Raises `CannotStart` if it has no manifest, or one of a later program.

    open_file    opens a file by its name
    """

    def __init__(self, path: Path, open_file: Callable[[str], IO[bytes]]) -> None:
        self.path = path
        self._open_file = open_file
        try:
            with open_file(MANIFEST) as file:
                self.manifest = msgspec.json.decode(file.read(), type=Manifest)
        except MISSING_FILE as error:
            raise CannotStart(
                f"{path} has no {MANIFEST}: it is not a backup, or one that was interrupted. Use another one."
            ) from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CannotStart(f"The {MANIFEST} in {path} cannot be read: {error}. Use another backup.") from error
        if self.manifest.format > FORMAT:
            raise CannotStart(
                f"The backup was made by Holdfast {self.manifest.version}, which writes another format. Install that "
                "version, or a newer one, and restore with it."
            )

    def chunks(self, name: str) -> Iterator[bytes]:
        """The contents of a file. Raises `CannotStart` if it is missing."""
        try:
            file = self._open_file(name)
        except MISSING_FILE as error:
            raise CannotStart(f"{name} is missing in {self.path}. Use another backup.") from error
        with file:
            while chunk := file.read(dumps.CHUNK_BYTES):
                yield chunk

    def text(self, name: str) -> str:
        """The contents of a small file; empty if the backup does not have the file."""
        return b"".join(self.chunks(name)).decode() if name in self.manifest.files else ""

    def verify(self, progress: Progress) -> None:
        """Read every file again and compare its checksum; let `pg_restore` read every dump. Raises `CannotStart`."""
        files = self.manifest.files
        with progress.phase("verifying", sum(record.bytes for record in files.values())) as count:
            for name, record in files.items():
                if _copy(count_chunks(self.chunks(name), count)) != record:
                    raise CannotStart(f"{name} in {self.path} is damaged: its checksum differs. Use another backup.")
        for service in self.manifest.services:
            for _ in dumps.run_program("pg_restore", "--list", input=self.chunks(dump_name(service))):
                pass


@contextlib.contextmanager
def open_backup(path: Path) -> Generator[Backup]:
    """A backup for as long as the block lasts. Raises `CannotStart` if there is none."""
    if path.is_dir():
        yield Backup(path, lambda name: (path / name).open("rb"))
        return
    try:
        archive = tarfile.open(path, "r:")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise CannotStart(f"There is no backup at {path}.") from error
    except tarfile.ReadError as error:
        raise CannotStart(f"{path} is not a backup: {error}.") from error
    with archive:
        members: dict[str, tarfile.TarInfo] = {}
        # A tar file that was cut off lacks the manifest, which is its last file.
        with contextlib.suppress(tarfile.ReadError):
            members = {member.name: member for member in archive.getmembers() if member.isfile()}
        yield Backup(path, lambda name: cast("IO[bytes]", archive.extractfile(members[name])))


@dataclass(frozen=True)
class BackupWriter:
    """Writes the files of a backup, and lists them in its manifest.

    create    makes a file by its name, and opens it
    """

    create: Callable[[str], AbstractContextManager[IO[bytes]]]
    manifest: Manifest

    def write(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write a file of the backup."""
        with self.create(name) as file:
            self.manifest.files[name] = _copy(chunks, file)


@contextlib.contextmanager
def new_backup(path: Path, progress: Progress) -> Generator[BackupWriter]:
    """A writer of a backup: a tar file if its name ends in `.tar`, else a directory. Raises `CannotStart`.

    When the block ends, the backup is verified, and gets its name. If anything fails, nothing is left of it.
    """
    if path.suffix in COMPRESSED_SUFFIXES:
        raise CannotStart(f"A backup is a directory or a file that ends in .tar. Give {path} another name.")
    is_empty_directory = path.is_dir() and not any(path.iterdir())
    if path.exists() and not (is_empty_directory and path.suffix != ".tar"):
        raise CannotStart(f"{path} exists already. A backup never replaces another one: give it another name.")
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    manifest = Manifest(FORMAT, __version__, began_at=now, finished_at=now, services={}, files={})
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.unfinished-", dir=path.parent) as directory:
        unfinished = Path(directory) / path.name
        with (_new_tar_file if path.suffix == ".tar" else _new_directory)(unfinished) as create:
            yield BackupWriter(create, manifest)
            manifest.began_at = min(record.began_at for record in manifest.services.values())
            manifest.finished_at = datetime.now(UTC)
            with create(MANIFEST) as file:
                file.write(msgspec.json.format(msgspec.json.encode(manifest)))
        with open_backup(unfinished) as backup:
            backup.verify(progress)
        unfinished.rename(path)
        parent = os.open(path.parent, os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)


def _new_file(path: Path) -> IO[bytes]:
    """A new file, which only its owner can read."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")  # noqa: PTH123


@contextlib.contextmanager
def _new_directory(directory: Path) -> Generator[Callable[[str], IO[bytes]]]:
    def create(name: str) -> IO[bytes]:
        file_path = directory / name
        file_path.parent.mkdir(mode=0o700, exist_ok=True, parents=True)
        return _new_file(file_path)

    directory.mkdir(mode=0o700)
    yield create
    os.sync()


@contextlib.contextmanager
def _new_tar_file(path: Path) -> Generator[Callable[[str], AbstractContextManager[IO[bytes]]]]:
    with _new_file(path) as tar:

        @contextlib.contextmanager
        def create(name: str) -> Generator[IO[bytes]]:
            # The size of a file is known when it has ended. Its header is written then.
            start = tar.tell()
            tar.write(bytes(tarfile.BLOCKSIZE))
            yield tar
            end = tar.tell()
            header = tarfile.TarInfo(name)
            header.size, header.mode = end - start - tarfile.BLOCKSIZE, 0o600
            header.mtime = int(datetime.now(UTC).timestamp())
            # This format has sizes of any length in a header of one block.
            block = header.tobuf(tarfile.GNU_FORMAT)
            assert len(block) == tarfile.BLOCKSIZE, f"the name {name} is too long"
            tar.seek(start)
            tar.write(block)
            tar.seek(end)
            tar.write(bytes(-header.size % tarfile.BLOCKSIZE))

        yield create
        tar.write(bytes(2 * tarfile.BLOCKSIZE))
        tar.flush()
        os.fsync(tar.fileno())


def _copy(chunks: Iterable[bytes], file: IO[bytes] | None = None) -> FileRecord:
    """Write chunks into a file, if there is one. Returns their size and checksum."""
    digest, size = sha256(), 0
    for chunk in chunks:
        if file:
            file.write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return FileRecord(size, digest.hexdigest())
