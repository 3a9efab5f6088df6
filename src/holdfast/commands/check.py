"""`holdfast check`: looks at both services, and says what is wrong and what to do. It changes nothing."""

import asyncio
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.kit.process.garbage_collection import importing

if TYPE_CHECKING:
    from holdfast.kit.environment.settings import Settings
    from holdfast.kit.process.checks.inspection import AnyCheck, CheckLimits, Finding, Inspection
    from holdfast.kit.process.service_process import ServiceProcess

ServiceName = Literal["events", "inventory"]
SERVICES: tuple[ServiceName, ...] = ("inventory", "events")

MARKS = {"ok": "✓", "warning": "!", "wrong": "✗", "skipped": "-"}

MAX_COLUMNS = 100
POINT_COLUMNS = 19
"""Columns for the mark and the name of a point."""


def check(
    service: Annotated[ServiceName | None, typer.Option(help="Look at one service alone.")] = None,
    point: Annotated[
        list[str] | None, typer.Option(help="Look at this point alone, such as clock; may be given several times.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look at everything that the services need, and say what is wrong and what to do.

    It changes nothing, and may run while the services run and while they do not. Run it as the user of the services,
    with their settings. It exits with 1 if something is wrong; warnings alone exit with 0.
    """
    with importing():
        from holdfast.kit.environment import logs

    # What the checks find is printed; the lines that the parts of the service log about it would only repeat it.
    logs.configure("CRITICAL")
    findings = asyncio.run(find((service,) if service else SERVICES, point or ()))
    typer.echo(json_text(findings) if as_json else "\n".join(lines_of(findings, columns())))
    if any(finding.status == "wrong" for finding in findings):
        raise typer.Exit(1)


def check_ledger() -> None:
    """Compare every pool with the sum of its ledger: the point "ledger" of `holdfast check`."""
    check("inventory", ["ledger"])


def _services() -> "dict[ServiceName, tuple[ServiceProcess[Any, Any], Sequence[AnyCheck]]]":
    from holdfast.events import checks as events
    from holdfast.events.product import EVENTS
    from holdfast.inventory import checks as inventory
    from holdfast.inventory.product import INVENTORY

    return {"inventory": (INVENTORY, inventory.CHECKS), "events": (EVENTS, events.CHECKS)}


async def find(
    services: Sequence[ServiceName], points: Sequence[str] = (), limits: "CheckLimits | None" = None
) -> "list[Finding]":
    """The findings on services, in the order in which they are shown.

    points    the only points that are looked at; none: all
    """
    _refuse_unknown_points(points)
    results = await _find_of_each(services, points, limits, are_in_use=len(services) == 1)
    findings = [finding for of_service, _ in results for finding in of_service]
    if all(finding.status == "skipped" for finding in findings):  # none is set up: then say where each was looked for
        results = await _find_of_each(services, points, limits, are_in_use=True)
        findings = [finding for of_service, _ in results for finding in of_service]
    inspections = [inspection for _, inspection in results if inspection]
    return [*findings, *(() if points else compare(inspections))]


def _refuse_unknown_points(points: Sequence[str]) -> None:
    known = {"settings", "database", *(check.point for _, checks in _services().values() for check in checks)}
    for point in points:
        if point not in known:
            raise typer.BadParameter(f"There is no point {point}. The points are: {', '.join(sorted(known))}.")


async def _find_of_each(
    services: Sequence[ServiceName], points: Sequence[str], limits: "CheckLimits | None", *, are_in_use: bool
) -> "list[tuple[list[Finding], Inspection[Any] | None]]":
    return await asyncio.gather(*(_find_of(service, points, limits, is_in_use=are_in_use) for service in services))


async def _find_of(
    service: ServiceName, points: Sequence[str], limits: "CheckLimits | None", *, is_in_use: bool
) -> "tuple[list[Finding], Inspection[Any] | None]":
    from holdfast.kit.contract.problems import CannotStart
    from holdfast.kit.environment.settings import read_settings
    from holdfast.kit.process.checks.inspection import Finding

    product, checks = _services()[service]
    try:
        settings = await asyncio.to_thread(read_settings, product.settings)
    except CannotStart as error:
        remedy = "Correct these settings, in the environment of the service or in .env."
        return [Finding("wrong", str(error), remedy, "settings", service)], None
    if not is_in_use and not _is_in_use(settings):
        message = f"Not looked at, because {product.title} is not set up here: it has no database and no settings."
        return [Finding("skipped", message, "", "settings", service)], None
    chosen = [check for check in checks if not points or check.point in points]
    findings, inspection = await inspect(product, settings, chosen, limits)
    return [finding for finding in findings if not points or finding.point in points or finding.status == "wrong"], (
        inspection
    )


async def inspect(
    product: "ServiceProcess[Any, Any]",
    settings: "Settings",
    checks: "Sequence[AnyCheck]",
    limits: "CheckLimits | None" = None,
) -> "tuple[list[Finding], Inspection[Any]]":
    """Run checks of one service with these settings. Returns the findings, those on settings and database first."""
    from dataclasses import replace

    from holdfast.kit.process.checks.inspection import ok, open_inspection, run_checks

    inspection, reached = await open_inspection(product, settings, limits)
    first = [replace(ok("All settings can be read."), point="settings"), replace(reached, point="database")]
    findings = [replace(finding, service=product.name) for finding in first]
    return [*findings, *await run_checks(inspection, checks)], inspection


def _is_in_use(settings: "Settings") -> bool:
    """Whether anything says that a service is used here."""
    has_cluster = (settings.data_dir / "postgres" / "PG_VERSION").exists()
    return has_cluster or bool(settings.database_url or settings.secret_key or settings.base_url)


def compare(inspections: "Sequence[Inspection[Any]]") -> "list[Finding]":
    """The findings on what the services must not have in common."""
    from holdfast.kit.process.checks.inspection import Finding
    from holdfast.kit.security.secrets import SecretTooShort

    if len(inspections) < 2:
        return []
    findings = list[Finding]()
    addresses = {inspection.settings.base_url for inspection in inspections}
    variables = " and ".join(sorted(inspection.variable("base_url") for inspection in inspections))
    if len(addresses) == 1 and addresses != {""}:
        remedy = (
            "Give each service an address of its own, such as https://events.example.com and https://stock.example.com"
        )
        findings.append(Finding("wrong", f"{variables} are the same address.", remedy, "base address", "both"))
    try:
        secrets = [secret.value for inspection in inspections if (secret := inspection.secret())]
    except (SecretTooShort, OSError):
        secrets = []  # the point "secret" says so
    if len(secrets) > len({*secrets}):
        message = "Both services have the same secret: whoever gets it opens both."
        remedy = "Rotate the secret of one of them: docs/deploy/secrets.md"
        findings.append(Finding("warning", message, remedy, "secret", "both"))
    return findings


def columns() -> int:
    return min(MAX_COLUMNS, shutil.get_terminal_size().columns)


def lines_of(findings: "Sequence[Finding]", width: int) -> list[str]:
    """The findings as text, at most `width` columns wide where words allow it."""
    titles = {"events": "Holdfast Events", "inventory": "Holdfast Inventory", "both": "Both services"}
    lines = list[str]()
    service = ""
    for finding in _with_skipped_points_together(findings):
        if finding.service != service:
            service = finding.service
            lines += ([""] if lines else []) + [titles[service]]
        lines += _lines_of_finding(finding, width)
    return [*lines, "", _summary(findings)]


def _with_skipped_points_together(findings: "Sequence[Finding]") -> "list[Finding]":
    """The findings, with one line for the points of a service that were not looked at for the same reason."""
    from dataclasses import replace

    groups: dict[tuple[str, str, object], list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = (finding.service, finding.message, None if finding.status == "skipped" else number)
        groups.setdefault(key, []).append(finding)
    together: list[Finding] = []
    for first, *others in groups.values():
        points = ", ".join(finding.point for finding in (first, *others))
        message = f"{first.message.removesuffix('.')}: {points}."
        together.append(replace(first, point=f"{len(others) + 1} points", message=message) if others else first)
    return together


def _lines_of_finding(finding: "Finding", width: int) -> list[str]:
    indent = " " * POINT_COLUMNS
    head = f"{MARKS[finding.status]} {finding.point}".ljust(POINT_COLUMNS - 1) + " "
    text = _wrapped(finding.message, width, head, indent)
    return text + (_wrapped(finding.remedy, width, f"{indent}→ ", f"{indent}  ") if finding.remedy else [])


def _wrapped(text: str, width: int, first: str, following: str) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 60),
        initial_indent=first,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(findings: "Sequence[Finding]") -> str:
    count = counts(findings)
    parts = [f"{count['wrong']} wrong", f"{count['warning']} warnings", f"{count['ok']} in order"]
    if count["warning"] == 1:
        parts[1] = "1 warning"
    if count["skipped"]:
        parts.append(f"{count['skipped']} not looked at")
    return f"{', '.join(parts)}."


def counts(findings: "Sequence[Finding]") -> dict[str, int]:
    """How many findings have each status."""
    return {status: sum(finding.status == status for finding in findings) for status in MARKS}


def json_text(findings: "Sequence[Finding]") -> str:
    """The findings as JSON: how many have each status, and each of them."""
    import json
    from dataclasses import asdict

    order = ("service", "point", "status", "message", "remedy")
    rows = [asdict(finding) for finding in findings]
    return json.dumps(
        {"counts": counts(findings), "findings": [{name: row[name] for name in order} for row in rows]},
        indent=2,
        ensure_ascii=False,
    )
