"""`holdfast status`: what both services are doing at present, on one screen. It only reads."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, LiteralString

import typer

from holdfast.commands.services import ServiceOption, services
from holdfast_verify.terminal import AsJson, fitted, print_json

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess

MAX_COUNTED_ROWS = 100_000
"""Rows up to which something is counted."""

STATEMENT_TIMEOUT = "5s"

Row = Mapping[str, Any]

SESSIONS: LiteralString = """
    select coalesce(host(client_addr), 'this machine') as address, count(*) as connections,
           count(*) filter (where application_name like %(service)s || ' %% listener') as processes,
           min(backend_start) filter (where application_name like %(service)s || ' leaders %%') as leads_since
      from pg_stat_activity
     where datname = current_database() and application_name like %(service)s || '%%'
     group by 1 order by 1
"""
"""Each process has one session that listens, and one session of leaders if it does background work."""

JOBS: LiteralString = """
    select count(*) filter (where status = 'failed') as failed, count(*) filter (where status = 'doing') as running,
           count(*) filter (where status = 'todo' and coalesce(scheduled_at, now()) <= now()) as waiting
      from (select status, scheduled_at from procrastinate_jobs
             where status in ('todo', 'doing', 'failed') limit %(counted)s) as jobs
"""

MAILS: LiteralString = """
    select (select count(*) from (select from mails where ended_at is null and hold is null limit %(counted)s) as rows)
               as waiting,
           (select count(*) from (select from mails where ended_at is null and hold is not null
                                   limit %(counted)s) as rows) as held,
           (select count(*) from (select from mails where outcome = 'failed' limit %(counted)s) as rows) as failed,
           (select floor(extract(epoch from now() - min(coalesce(released_at, inserted_at))))::int
              from (select inserted_at, released_at from mails where ended_at is null and hold is null
                     limit %(counted)s) as rows) as oldest_seconds
"""

REGISTRATIONS: LiteralString = """
    select count(*) as waiting, floor(extract(epoch from now() - min(received_at)))::int as oldest_seconds
      from (select received_at from registrations where status = 'pending' limit %(counted)s) as registrations
"""

QUEUES: LiteralString = """
    select count(*) filter (where active) as open, count(*) filter (where not active) as paused,
           coalesce(sum(tickets - serving), 0)::bigint as visitors_waiting
      from queues
     where deleted_at is null and coalesce(starts_at, now()) <= now() and coalesce(ends_at > now(), true)
"""

WEBHOOKS: LiteralString = """
    select count(*) filter (where due_at <= now()) as due, count(*) filter (where due_at > now()) as tried_again_later,
           (select count(*) from (select from webhooks where due_at is null and handled_at is null
                                   limit %(counted)s) as rows) as parked
      from (select due_at from webhooks where due_at is not null limit %(counted)s) as webhooks
"""

SHOPS: LiteralString = """
    select count(*) as total,
           count(*) filter (where installs.shop_id is not null and uninstalled_at is null and broken is null)
               as connected,
           count(*) filter (where uninstalled_at is not null or broken is not null) as disconnected,
           count(*) filter (where installs.shop_id is null) as never_connected
      from shops left join installs on installs.shop_id = shops.id
"""

SYNCS: LiteralString = """
    select count(*) filter (where due_at <= now() and attempts = 0) as due,
           count(*) filter (where attempts > 0) as failing
      from syncs
"""

FIGURES: Mapping[str, Mapping[str, LiteralString]] = {
    "inventory": {"jobs": JOBS, "mails": MAILS, "webhooks": WEBHOOKS, "synchronizations": SYNCS, "shops": SHOPS},
    "events": {"jobs": JOBS, "mails": MAILS, "registrations": REGISTRATIONS, "queues": QUEUES},
}
"""The lines of figures of each service. The statement of a line gives one row."""


def status(service: ServiceOption = None, as_json: AsJson = False) -> None:
    """Show what the services are doing at present.

    For each service: its database, whether the schema is current, the processes that are connected, who leads the
    background work, and how much work waits or has failed. It only reads. Exits with 1 if no service can be read.
    """
    from holdfast import __version__
    from holdfast.kit.contract.problems import CannotStart
    from holdfast.kit.postgres.bundled_server import CannotRun

    states: dict[str, dict[str, Any]] = {}
    for process in services(service):
        try:
            states[process.name] = _read(process)
        except (CannotStart, CannotRun) as error:
            states[process.name] = {"error": str(error)}
    if as_json:
        print_json({"version": __version__, "services": states})
    else:
        typer.echo(f"Holdfast {__version__}")
        for name, state in states.items():
            _print(name, state)
    if all("error" in state for state in states.values()):
        raise typer.Exit(1)


def _read(process: "ServiceProcess[Any, Any]") -> dict[str, Any]:
    """What is known of one service. Raises `CannotStart` if its settings or its database cannot be used."""
    import psycopg
    from psycopg.rows import dict_row

    from holdfast.kit.contract.problems import CannotStart
    from holdfast.kit.environment.logs import first_line
    from holdfast.kit.process import database_location

    settings = process.configured()
    url = database_location.existing_url(settings)
    state: dict[str, Any] = {"database": database_location.location_text(settings)}
    state["missing_migrations"] = process.pending(url)
    state["is_migrated"] = len(state["missing_migrations"]) < len(process.schema())
    try:
        with psycopg.Connection[dict[str, Any]].connect(
            url, autocommit=True, row_factory=dict_row, connect_timeout=10, application_name="holdfast status"
        ) as connection:
            connection.execute("set default_transaction_read_only = on")
            connection.execute("select set_config('statement_timeout', %s, false)", [STATEMENT_TIMEOUT])
            parameters = {"service": f"holdfast {process.name}", "counted": MAX_COUNTED_ROWS}
            state["postgresql"] = connection.info.parameter_status("server_version")
            state["sessions"] = connection.execute(SESSIONS, parameters).fetchall()
            for name, statement in FIGURES[process.name].items():
                try:
                    [state[name]] = connection.execute(statement, parameters).fetchall()
                except (psycopg.ProgrammingError, psycopg.errors.QueryCanceled) as error:
                    # As in a database that lacks migrations.
                    state[name] = {"unknown": first_line(error)}
    except psycopg.OperationalError as error:
        raise CannotStart(f"The database could not be read: {first_line(error)}.") from error
    return state


def _print(name: str, state: Row) -> None:
    from holdfast_verify.terminal import iso_time, names_text

    title = typer.style(name.capitalize(), bold=True)
    if "error" in state:
        typer.echo(fitted(f"{title}  {state['error']}", indent="  "))
        return
    schema = "current"
    if not state["is_migrated"]:
        schema = f"none yet; run holdfast {name} migrate"
    elif missing_migrations := state["missing_migrations"]:
        schema = f"old; run holdfast {name} migrate. It lacks {names_text(missing_migrations)}"
    sessions = state["sessions"]
    processes = [f"{row['processes']} on {row['address']}" for row in sessions if row["processes"]]
    leaders = [f"{row['address']} since {iso_time(row['leads_since'])}" for row in sessions if row["leads_since"]]
    lines = {
        "database": f"{state['database']}, PostgreSQL {state['postgresql']}",
        "schema": schema,
        "processes": f"{', '.join(processes) or 'none'}; {sum(row['connections'] for row in sessions)} connections",
        "background work": ", ".join(leaders) or "no process does it",
    }
    if state["is_migrated"]:
        lines |= {line: _figures_text(state[line]) for line in FIGURES[name]}
    typer.echo(title)
    for label, text in lines.items():
        typer.echo(fitted(f"  {label:<16}  {text}", indent=" " * 20))


def _figures_text(figures: Row) -> str:
    if "unknown" in figures:
        return f"unknown: {figures['unknown']}"
    return ", ".join(
        f"{name.replace('_', ' ')} {f'{value:,}' if value < MAX_COUNTED_ROWS else f'{MAX_COUNTED_ROWS:,} or more'}"
        for name, value in figures.items()
        if value is not None
    )
