"""Where the data of a service is: in the database that its settings name, or the embedded one in the data directory."""

import contextlib
from collections.abc import Generator, Sequence
from pathlib import Path

import psycopg

from holdfast.kit import embedded
from holdfast.kit.logs import first_line
from holdfast.kit.problems import CannotStart
from holdfast.kit.resources import secret_file
from holdfast.kit.rotation import Sealed, is_anything_sealed
from holdfast.kit.settings import Settings


def url(settings: Settings) -> str:
    """The URL of the database. Starts the embedded server when no database is set. Raises `CannotStart`."""
    if settings.database_url:
        return _reached(settings)
    with using(settings.data_dir):
        return embedded.database_url(settings.data_dir, settings.service)


def existing_url(settings: Settings) -> str:
    """The URL of the database. The embedded one is not created. Raises `CannotStart`."""
    if settings.database_url:
        return _reached(settings)
    url = embedded.existing_database_url(settings.data_dir, settings.service)
    if url is None:
        raise CannotStart(
            f"There is no {settings.service} database in the data directory {settings.data_dir.resolve()}. Set "
            f"HOLDFAST_DATA_DIR to the directory that the service uses, or {settings.variable('database_url')} to its "
            "database."
        )
    return url


def place(settings: Settings) -> str:
    """Where the data is, in words."""
    if settings.database_url:
        return f"the database that {settings.variable('database_url')} names"
    return f"the data directory {settings.data_dir.resolve()}"


def require_secret(settings: Settings, sealed: Sequence[Sealed]) -> None:
    """Raise `CannotStart` where a new secret would be made for a database whose contents need another one.

    sealed    the tables with contents that only the secret opens
    """
    if settings.secret_key:
        return
    database, secret = (settings.variable(name) for name in ("database_url", "secret_key"))
    if settings.database_url:
        raise CannotStart(
            f"{database} is set and {secret} is not. Every process that uses the database needs the same secret: "
            f"set {secret} to 32 or more random characters."
        )
    if settings.old_secret_key:  # with it, the contents can be sealed with a new one
        return
    file = secret_file(settings)
    with using(settings.data_dir):
        url = None if file.exists() else embedded.existing_database_url(settings.data_dir, settings.service)
    if url and is_anything_sealed(url, sealed):
        raise CannotStart(
            f"The file {file.resolve()} is missing, and only the secret in it opens some contents of the database. "
            f"Restore the file from the backup of the data directory, or set {secret} to that secret."
        )


@contextlib.contextmanager
def using(data_dir: Path) -> Generator[None]:
    """Raise `CannotStart` if the data directory cannot be used."""
    try:
        yield
    except OSError as error:
        raise CannotStart(
            f"Cannot use the data directory {data_dir.resolve()}: {error.strerror or error}. Set HOLDFAST_DATA_DIR to "
            "a directory that this user may write to."
        ) from error


def _reached(settings: Settings) -> str:
    """The URL of the database that the settings name. Raises `CannotStart` if it cannot be reached."""
    try:
        psycopg.connect(settings.database_url, connect_timeout=10).close()
    except psycopg.OperationalError as error:
        raise CannotStart(
            f"Cannot use the database that {settings.variable('database_url')} names: {first_line(error)}. Check its "
            "address, user and password, and that it runs."
        ) from error
    return settings.database_url
