"""`holdfast check`: looks at both services, and says what is wrong and what to do. It changes nothing."""

from typing import Annotated

import typer

from holdfast.commands.services import ServiceName
from holdfast.kit.process.startup import importing
from holdfast_verify.terminal import columns, fitted


def check(
    service: Annotated[ServiceName | None, typer.Option(help="Look at one service alone.")] = None,
    point: Annotated[
        list[str] | None,
        typer.Option(metavar="POINT", help="Look at this point alone, such as clock; may be given several times."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what is wrong, and what to do.

    It changes nothing, and the services may run or not. Run it as the user of the services, with their settings. It
    exits with 1 if something is wrong; warnings alone exit with 0.
    """
    with importing():
        import asyncio

        from holdfast.commands import check_report
        from holdfast.kit.environment import logs

    # What the checks find is printed; the lines that parts of the service log about it would only repeat it.
    logs.configure("CRITICAL")
    findings = asyncio.run(check_report.find((service,) if service else tuple(ServiceName), point or ()))
    if as_json:
        typer.echo(check_report.json_text(findings))
    else:
        typer.echo("\n".join(check_report.lines_of(findings, columns())))
    if any(finding.status == "wrong" for finding in findings):
        raise typer.Exit(1)


def check_ledger() -> None:
    """Compare pools with their ledger.

    It is the point "ledger" of `holdfast check`.
    """
    with importing():
        import asyncio

        from holdfast.commands import check_report

    findings = asyncio.run(check_report.find(("inventory",), ("migrations", "ledger")))
    wrong = [finding for finding in findings if finding.status == "wrong"]
    for finding in wrong:
        typer.echo(fitted(f"{finding.message} {finding.remedy}", err=True), err=True)
    if wrong:
        raise typer.Exit(1)
    for finding in findings:
        if finding.point == "ledger":
            typer.echo(fitted(finding.message))
