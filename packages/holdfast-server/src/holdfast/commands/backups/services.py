"""The services that a command about backups is for: their settings, secrets and databases."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres.schema import dumps
from holdfast.kit.postgres.schema.lineage import BASELINE
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.secrets import Secret

if TYPE_CHECKING:
    from holdfast.events.storage.store import Store

Product = ServiceProcess[Any, Any]

ROLES = {"inventory": "holdfast_shop"}
"""The roles that the database of a service needs. They belong to the server, so that no dump has them."""


def products(service: str | None) -> Sequence[Product]:
    """The services: both, or the one that is named."""
    from holdfast.events.service import EVENTS
    from holdfast.inventory.service import INVENTORY

    return [product for product in (INVENTORY, EVENTS) if service in (None, product.name)]


def prepare_server(connection: psycopg.Connection[Any], service: str) -> None:
    """Let a server have the role that the database of a service needs. Raises `CannotStart`."""
    if role := ROLES.get(service):
        dumps.ensure_role(connection, role)


def require_stopped(connection: psycopg.Connection[Any], service: str) -> None:
    """Raise `CannotStart` if a service uses a database."""
    if sessions := dumps.count_service_sessions(connection):
        raise CannotStart(
            f"The {service} service is running: it has {sessions} sessions in the database. Stop it first: press "
            f"Ctrl-C where `holdfast up` or `holdfast {service} serve` runs, or `systemctl stop holdfast-{service}`."
        )


def require_same_rows(connection: psycopg.Connection[Any], expected: Mapping[str, int]) -> None:
    """Compare the number of rows of each table. Raises `CannotStart` if one differs."""
    counts = dumps.row_counts(connection)
    for table in sorted(expected.keys() | counts.keys()):
        if counts.get(table, 0) != expected.get(table, 0):
            raise CannotStart(
                f"The copy is not whole: the table {table} has {counts.get(table, 0)} rows instead of "
                f"{expected.get(table, 0)}. Do not use it. Start again with an empty database."
            )


def secret_variable(settings: Settings, *, old: bool = False) -> str:
    """The setting of the secret, or of the one before its rotation."""
    return settings.variable("old_secret_key" if old else "secret_key")


def photo_store(settings: Any) -> "Store":
    """The store of photos that the settings of the events service name. Raises `MissingPackage`."""
    from holdfast.events.resources import photo_store

    # Only addresses of uploads are signed, which nobody asks for here.
    return photo_store(settings, Secret(b""))


def later_migrations(product: Product, applied: Sequence[str]) -> list[str]:
    """Of the migrations that a database has, those that this version of the program does not know."""
    schema = product.schema()
    known = {migration.name for migration in schema}
    unknown = [name for name in applied if name not in known and name.endswith(".sql")]
    baselines = [match for migration in schema if (match := BASELINE.match(migration.sql))]
    # A baseline replaces earlier migrations: a database that has the last of them is older, and not newer.
    return [] if any(baseline["last"] in unknown for baseline in baselines) else unknown
