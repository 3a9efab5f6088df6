"""The manifest of a backup: what is in it, since when, and the checksum of every file."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

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
