"""The location of a service's data: the database in its settings, or the bundled one in the data directory."""

import contextlib
import errno
import os
from collections.abc import Generator, Sequence
from pathlib import Path

import psycopg

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.full_disk import full_disk_text, reason_of
from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.connection_errors import connection_failure, connection_remedy
from holdfast.kit.process.resources import secret_file
from holdfast.kit.security.service_secret import SealedTable, is_anything_sealed


def url(settings: Settings) -> str:
    """The URL of the database. Starts the bundled server if no database is set. Raises `CannotStart`."""
    if settings.database_url:
        return _checked_url(settings)
    with report_unusable_directory(settings.data_dir):
        return bundled.database_url(settings.data_dir, settings.service)


def existing_url(settings: Settings) -> str:
    """The URL of the database. The bundled one is not created. Raises `CannotStart`."""
    if settings.database_url:
        return _checked_url(settings)
    with report_unusable_directory(settings.data_dir):
        url = bundled.existing_database_url(settings.data_dir, settings.service)
    if url is None:
        raise CannotStart(
            f"There is no {settings.service} database in the data directory {settings.data_dir.resolve()}. Set "
            f"HOLDFAST_DATA_DIR to the directory that the service uses, or {settings.variable('database_url')} to its "
            "database."
        )
    return url


def location_text(settings: Settings) -> str:
    """The location of the data, in words."""
    if settings.database_url:
        return f"the database that {settings.variable('database_url')} names"
    return f"the data directory {settings.data_dir.resolve()}"


def require_secret(settings: Settings, sealed: Sequence[SealedTable]) -> None:
    """Raise `CannotStart` if a new secret would be created for a database whose contents need another secret.

    sealed    the tables with contents that were sealed with the secret
    """
    if text := missing_secret_text(settings):
        raise CannotStart(text)
    if settings.secret_key or settings.old_secret_key:  # with an old one, the contents can be sealed with a new one
        return
    file = secret_file(settings)
    with report_unusable_directory(settings.data_dir):
        url = None if file.exists() else bundled.existing_database_url(settings.data_dir, settings.service)
    if url and is_anything_sealed(url, sealed):
        raise CannotStart(
            f"The file {file.resolve()} is missing, and only the secret in it opens some contents of the database. "
            "Restore the file from the backup of the data directory, or set "
            f"{settings.variable('secret_key')} to that secret."
        )


def missing_secret_text(settings: Settings) -> str | None:
    """What to do if the settings name a database and no secret; None if that is not so."""
    if settings.secret_key or not settings.database_url:
        return None
    database, secret = (settings.variable(name) for name in ("database_url", "secret_key"))
    return (
        f"{database} is set and {secret} is not. Every process that uses the database needs the same secret: "
        f"set {secret} to 32 or more random characters."
    )


@contextlib.contextmanager
def report_unusable_directory(data_dir: Path) -> Generator[None]:
    """Raise `CannotStart` if the data directory cannot be used."""
    try:
        yield
    except OSError as error:
        if reason := reason_of(error):
            raise CannotStart(full_disk_text(reason, data_dir.resolve())) from error
        # A file in the place of the directory "exists", as a new directory is made.
        reason = os.strerror(errno.ENOTDIR) if isinstance(error, FileExistsError) else error.strerror or error
        raise CannotStart(
            f"Cannot use the data directory {data_dir.resolve()}: {reason}. Set HOLDFAST_DATA_DIR to "
            "a directory that this user may write to."
        ) from error


def _checked_url(settings: Settings) -> str:
    """The URL of the database in the settings. Raises `CannotStart` if it cannot be reached."""
    try:
        psycopg.connect(settings.database_url, connect_timeout=10).close()
    except psycopg.OperationalError as error:
        variable = settings.variable("database_url")
        raise CannotStart(
            f"Cannot use the database that {variable} names: {connection_failure(error)}. "
            f"{connection_remedy(error, variable)}"
        ) from error
    return settings.database_url
