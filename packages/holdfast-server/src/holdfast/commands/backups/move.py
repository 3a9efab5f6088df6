"""`holdfast move`: from the bundled PostgreSQL to a server of one's own."""

import shlex
from collections.abc import Mapping
from typing import Any

import psycopg
import typer

from holdfast.commands.backups.archive import count_chunks
from holdfast.commands.services import services
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.connection_errors import connection_failure, connection_remedy
from holdfast.kit.postgres.schema import dumps
from holdfast.kit.process import database_location
from holdfast.kit.process.resources import existing_secret
from holdfast.kit.process.service_process import ServiceProcess
from holdfast_verify.terminal import Progress


def move_databases(urls: Mapping[str, str | None]) -> None:
    """Copy the bundled databases of services to others, and print the settings for these. Raises `CannotStart`.

    urls    the new database of each service, by its name; None if it stays
    """
    progress = Progress()
    moves = [
        (process, _bundled_url(process, url, progress), url)
        for process in services(None)
        if (url := urls[process.name])
    ]
    variables: dict[str, str] = {}
    for process, source, url in moves:
        name, settings = process.name, process.configured()
        with dumps.open_snapshot(source) as snapshot, progress.phase(f"database of {name}") as count:
            rows = dumps.row_counts(snapshot.connection)
            dumps.fill(url, name, count_chunks(snapshot.dump("plain"), count), rows, replace=False)
        with dumps.session(source) as connection:
            dumps.require_stopped(connection, name)
        variables[settings.variable("database_url")] = url
        if secret := existing_secret(settings):
            variables[settings.variable("secret_key")] = secret
    progress.line("Copied, and every table has as many rows as before. The old databases are as they were.")
    progress.line(
        "Write these settings where the services read them, and start the services. They have the secret keys:"
    )
    for name, value in variables.items():
        typer.echo(f"{name}={shlex.quote(value)}")


def _bundled_url(process: ServiceProcess[Any, Any], target: str, progress: Progress) -> str:
    """The URL of a bundled database that can move to another one. Says from where to where.

    Raises `CannotStart` for what stands in the way.
    """
    settings = process.configured().model_copy(update={"database_url": ""})
    source = database_location.existing_url(settings)
    with dumps.session(source) as connection:
        dumps.require_stopped(connection, process.name)
    try:
        with psycopg.connect(target, connect_timeout=10) as connection:
            dumps.require_supported_version(connection)
            location = dumps.location_text(connection)
            if not dumps.is_empty(connection):
                raise CannotStart(
                    f"The database for {process.name} is not empty: {location}. Make a new one, and move there."
                )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise CannotStart(
            f"The database for {process.name} cannot be used: {connection_failure(error)}. "
            f"{connection_remedy(error, f'--{process.name}')}"
        ) from error
    progress.line(f"{process.name}: from {database_location.location_text(settings)} to {location} (--{process.name}).")
    return source
