"""`holdfast config` shows what services read from the environment and `.env`; `holdfast secret` makes secrets."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from holdfast.commands.services import ServiceOption, services
from holdfast_verify.terminal import AsJson, fitted, print_json, printable

if TYPE_CHECKING:
    from holdfast.kit.environment.settings import Settings

EnvFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", help="A file of variables to add to the environment, such as the EnvironmentFile of a unit."
    ),
]

SECRET_BYTES = 48
"""The bytes of a new secret: 64 characters of letters, digits, - and _."""

config = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What the services read as settings.")
secret = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Secrets for the settings.")


class Finding(NamedTuple):
    """Something wrong with the settings.

    service     the service that reads it; None for a variable that no service reads
    is_error    whether `check` exits with 1; a variable that is not one of ours may belong to another program
    """

    service: str | None
    variable: str
    message: str
    is_error: bool


@config.command()
def show(
    service: ServiceOption = None,
    only_changed: Annotated[
        bool, typer.Option("--changed", help="Leave out settings with their default value.")
    ] = False,
    env_file: EnvFile = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting, its value, and its source.

    A secret is not shown, only how many characters it has. An address with a password is shown without it.
    """
    from holdfast.kit.environment import variables

    _add_to_environment(env_file)
    file = str(variables.env_file())
    tables: dict[str, list[dict[str, Any]]] = {
        process.name: [
            variable._asdict() | {"file": file if variable.source == ".env" else None}
            for variable in variables.variables(process.settings)
            if variable.source != "default" or not only_changed
        ]
        for process in services(service)
    }
    if as_json:
        print_json(tables)
    else:
        for name, table in tables.items():
            typer.echo(typer.style(name.capitalize(), bold=True))
            _print_table(table)
    _print_sources("docs/settings.md says what each setting means.")


def _print_table(table: Sequence[Mapping[str, Any]]) -> None:
    if not table:
        typer.echo("  every setting has its default value")
        return
    rows = [(row["name"], printable(row["value"]) or "-", row["file"] or row["source"]) for row in table]
    rows.insert(0, ("variable", "value", "from"))
    name_width, value_width = (max(len(row[column]) for row in rows) for column in range(2))
    for variable, value, source in rows:
        typer.echo(f"  {variable:<{name_width}}  {value:<{value_width}}  {source}")


@config.command()
def check(service: ServiceOption = None, env_file: EnvFile = None, as_json: AsJson = False) -> None:
    """Find wrong values and misspelt names, all at once.

    Exits with 1 if a service would not start with these settings, or if a variable begins with HOLDFAST_, EVENTS_ or
    INVENTORY_ and is no setting. Other variables that resemble a setting are shown with "!": they may belong to other
    programs.
    """
    _add_to_environment(env_file)
    kinds = [process.settings for process in services(service)]
    findings = _findings(kinds)
    is_ok = not any(finding.is_error for finding in findings)
    if as_json:
        print_json({"ok": is_ok, "findings": [finding._asdict() for finding in findings]})
    else:
        for finding in findings:
            typer.echo(fitted(f"{'✗' if finding.is_error else '!'} {finding.message}", indent="  "))
        for kind in kinds:
            if not any(finding.service == kind.service for finding in findings):
                typer.echo(f"✓ {kind.service}: every value can be used.")
    _print_sources("docs/settings.md lists the settings.")
    if not is_ok:
        raise typer.Exit(1)


def _findings(kinds: "Sequence[type[Settings]]") -> list[Finding]:
    from holdfast.kit.environment.variables import (
        env_file,
        unknown_in_environment,
        unknown_in_file,
        validate_settings,
    )
    from holdfast.kit.process.database_location import missing_secret_text

    findings: list[Finding] = []
    for kind in kinds:
        settings, invalid = validate_settings(kind)
        wrong = [(variable.name, f"{variable}.") for variable in invalid]
        if settings and (text := missing_secret_text(settings)):
            wrong.append((kind.variable("secret_key"), text))
        findings += [Finding(kind.service, name, f"{kind.service}: {text}", is_error=True) for name, text in wrong]
    for name, similar, _ in unknown_in_file(kinds):
        text = f"{name} in {env_file()} is no setting, and a service does not start with it.{_question(similar)}"
        findings.append(Finding(None, name, text, is_error=True))
    for name, similar, is_ours in unknown_in_environment(kinds):
        text = f"{name} in the environment is no setting, and is ignored.{_question(similar)}"
        findings.append(Finding(None, name, text, is_error=is_ours))
    return findings


def _question(similar: str | None) -> str:
    return f" Did you mean {similar}?" if similar else ""


def _add_to_environment(file: Path | None) -> None:
    from holdfast.kit.contract.problems import CannotStart
    from holdfast.kit.environment.variables import file_variables

    try:
        os.environ.update(file_variables(file) if file else {})
    except (OSError, ValueError) as error:
        raise CannotStart(f"Cannot read {file}: {getattr(error, 'strerror', None) or error}.") from error


def _print_sources(advice: str) -> None:
    from holdfast.kit.environment.variables import env_file

    file = env_file()
    looked = f"Looked in the environment and in {file}{'' if file.exists() else ', which does not exist'}."
    typer.echo(fitted(f"{looked} {advice}", err=True), err=True)


@secret.command()
def new() -> None:
    """Print a new random secret, alone on the last line.

    It fits EVENTS_SECRET_KEY, INVENTORY_SECRET_KEY and METRICS_TOKEN. Nothing is stored.
    """
    import secrets

    advice = (
        "Give each service a secret of its own, the same for all its processes: set EVENTS_SECRET_KEY or "
        "INVENTORY_SECRET_KEY to it, and keep a copy where your backups are not. docs/deploy/secrets.md says how to "
        "replace one that is in use."
    )
    typer.echo(fitted(advice, err=True), err=True)
    typer.echo(secrets.token_urlsafe(SECRET_BYTES))
