"""`holdfast move`: from the bundled PostgreSQL to a server of one's own."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.kit.process.startup import importing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.commands.backups.services import Product
    from holdfast_verify.terminal import Progress

Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The empty database for this service, as postgresql://user:password@host/name."),
]


def move(inventory: Url = None, events: Url = None) -> None:
    """Copy the bundled databases to a server of your own.

    The server has to be PostgreSQL 15 to 18. Give a URL for each service that moves. Stop the services first. The rows
    of every table are counted in both databases. What is in the data directory stays as it was, and photos stay in
    use there.

    The settings to write are printed on standard output, also the secret keys, and everything else on standard error.
    """
    with importing():
        from holdfast.commands.backups.services import products
        from holdfast_verify.terminal import Progress

    urls = {"inventory": inventory, "events": events}
    if not any(urls.values()):
        raise typer.BadParameter("Give --inventory URL, --events URL, or both.")
    progress = Progress()
    moves = [
        (product, url, _source(product, url, progress)) for product in products(None) if (url := urls[product.name])
    ]
    lines = [line for product, url, source in moves for line in _move(product, source, url, progress)]
    progress.line("Copied, and every table has as many rows as before. The old databases are as they were.")
    progress.line(
        "Write these settings where the services read them, and start the services. They have the secret keys:"
    )
    for line in lines:
        typer.echo(line)


def _source(product: "Product", url: str, progress: "Progress") -> str:
    """The URL of a bundled database that can move to another one. Says from where to where.

    Raises `CannotStart` for what stands in the way.
    """
    import psycopg

    from holdfast.commands.backups.services import require_stopped
    from holdfast.kit.contract.problems import CannotStart
    from holdfast.kit.postgres.connection_errors import connection_failure, connection_remedy
    from holdfast.kit.postgres.schema import dumps
    from holdfast.kit.process import database_location

    settings = product.configured().model_copy(update={"database_url": ""})
    source = database_location.existing_url(settings)
    with dumps.connect(source) as connection:
        require_stopped(connection, product.name)
    try:
        with dumps.connect(url) as connection:
            dumps.require_supported_version(connection)
            location = dumps.location_text(connection)
            if not dumps.is_empty(connection):
                raise CannotStart(
                    f"The database for {product.name} is not empty: {location}. Make a new one, and move there."
                )
            progress.line(
                f"{product.name}: from {database_location.location_text(settings)} to {location} (--{product.name})."
            )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise CannotStart(
            f"The database for {product.name} cannot be used: {connection_failure(error)}. "
            f"{connection_remedy(error, f'--{product.name}')}"
        ) from error
    return source


def _move(product: "Product", source: str, url: str, progress: "Progress") -> "Iterator[str]":
    """Copy a database. Returns the lines of the settings for it."""
    import shlex

    from holdfast.commands.backups.services import prepare_server, require_same_rows, require_stopped
    from holdfast.kit.postgres.schema import dumps
    from holdfast.kit.process.resources import secret_file

    settings = product.configured()
    with dumps.open_snapshot(source) as snapshot, progress.phase(f"database of {product.name}") as count:

        def statements() -> "Iterator[bytes]":
            for chunk in snapshot.dump("--format=plain", "--no-owner"):
                count(len(chunk))
                yield chunk

        with dumps.report_database_errors(), dumps.connect(url) as connection:
            prepare_server(connection, product.name)
        dumps.load(url, statements(), replace=False)
        expected = snapshot.row_counts()
    with dumps.report_database_errors(), dumps.connect(url) as connection:
        require_same_rows(connection, expected)
    with dumps.report_database_errors(), dumps.connect(source) as connection:
        require_stopped(connection, product.name)
    yield f"{settings.variable('database_url')}={shlex.quote(url)}"
    file = secret_file(settings)
    secret = settings.secret_key or (file.read_text(encoding="utf-8").strip() if file.exists() else "")
    if secret:
        yield f"{settings.variable('secret_key')}={shlex.quote(secret)}"
