"""The findings of `holdfast check` on both services, as text and as JSON."""

import asyncio
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import typer

from holdfast.events import checks as events
from holdfast.events.service import EVENTS
from holdfast.inventory import checks as inventory
from holdfast.inventory.service import INVENTORY
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.settings import Settings
from holdfast.kit.environment.variables import read_settings
from holdfast.kit.process.checks.inspection import AnyCheck, Finding, Inspection, ok, open_inspection, run_checks
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.secrets import SecretTooShort
from holdfast_verify.terminal import printable

PRODUCTS: dict[str, tuple[ServiceProcess[Any, Any], Sequence[AnyCheck]]] = {
    "events": (EVENTS, events.CHECKS),
    "inventory": (INVENTORY, inventory.CHECKS),
}
"""The services with their checks."""

TITLES = {**{name: product.title for name, (product, _) in PRODUCTS.items()}, "both": "Both services"}

MARKS = {"ok": "✓", "warning": "!", "wrong": "✗", "skipped": "-"}

POINT_COLUMNS = 19
"""Columns for the mark and the name of a point."""

FIELDS = ("service", "point", "status", "message", "remedy")


async def find(services: Sequence[str], points: Sequence[str] = ()) -> list[Finding]:
    """The findings on services, in the order in which they are shown.

    points    the only points that are looked at; none: all

    Raises `typer.BadParameter` for a point that does not exist.
    """
    known = {"settings", "database", *(check.point for _, checks in PRODUCTS.values() for check in checks)}
    for point in points:
        if point not in known:
            raise typer.BadParameter(f"There is no point {point}. The points are: {', '.join(sorted(known))}.")
    results = await _find_of_each(services, points, are_in_use=len(services) == 1)
    if all(finding.status == "skipped" for findings, _ in results for finding in findings):
        # None is set up: this says where each was looked for.
        results = await _find_of_each(services, points, are_in_use=True)
    inspections = [inspection for _, inspection in results if inspection]
    of_services = [finding for findings, _ in results for finding in findings]
    return [*of_services, *(() if points else compare(inspections))]


async def _find_of_each(
    services: Sequence[str], points: Sequence[str], *, are_in_use: bool
) -> list[tuple[list[Finding], Inspection[Any] | None]]:
    return await asyncio.gather(*(_find_of(service, points, is_in_use=are_in_use) for service in services))


async def _find_of(
    service: str, points: Sequence[str], *, is_in_use: bool
) -> tuple[list[Finding], Inspection[Any] | None]:
    product, checks = PRODUCTS[service]
    try:
        settings = await asyncio.to_thread(read_settings, product.settings)
    except CannotStart as error:
        remedy = "Correct these settings, in the environment of the service or in .env. Then run the check again."
        return [Finding("wrong", str(error), remedy, "settings", service)], None
    if not is_in_use and not _is_in_use(settings):
        message = f"Not looked at, because {product.title} is not set up here: it has no database and no settings."
        return [Finding("skipped", message, "", "settings", service)], None
    chosen = [check for check in checks if not points or check.point in points]
    findings, inspection = await inspect(product, settings, chosen)
    return [
        finding for finding in findings if not points or finding.point in points or finding.status == "wrong"
    ], inspection


def _is_in_use(settings: Settings) -> bool:
    """Whether anything says that a service is used here."""
    if settings.database_url or settings.secret_key or settings.base_url:
        return True
    try:
        return (settings.data_dir / "postgres" / "PG_VERSION").exists()
    except OSError:
        return True  # it cannot be looked at: the checks say why


async def inspect(
    product: ServiceProcess[Any, Any], settings: Settings, checks: Sequence[AnyCheck]
) -> tuple[list[Finding], Inspection[Any]]:
    """Run checks of one service with these settings. Returns the findings, those on settings and database first."""
    inspection, reached = await open_inspection(product, settings)
    first = [replace(ok("All settings can be read."), point="settings"), replace(reached, point="database")]
    findings = [replace(finding, service=product.name) for finding in first]
    return [*findings, *await run_checks(inspection, checks)], inspection


def compare(inspections: Sequence[Inspection[Any]]) -> list[Finding]:
    """The findings on what the services must not have in common."""
    if len(inspections) < 2:
        return []
    findings = list[Finding]()
    addresses: set[str] = {inspection.settings.base_url for inspection in inspections}
    variables = " and ".join(sorted(inspection.variable("base_url") for inspection in inspections))
    if len(addresses) == 1 and addresses != {""}:
        remedy = "Give each an address of its own, such as https://events.example.com and https://stock.example.com"
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


def lines_of(findings: Sequence[Finding], width: int) -> list[str]:
    """The findings as text, at most `width` columns wide where words allow it."""
    lines = list[str]()
    service = ""
    for finding in _with_skipped_points_together(findings):
        if finding.service != service:
            service = finding.service
            lines += [*([""] if lines else []), TITLES[service]]
        lines += _lines_of_finding(finding, width)
    return [*lines, "", _summary(findings)]


def _with_skipped_points_together(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with one line for the points of a service that were not looked at for the same reason."""
    groups: dict[tuple[str, str, object], list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = (finding.service, finding.message, None if finding.status == "skipped" else number)
        groups.setdefault(key, []).append(finding)
    together = list[Finding]()
    for first, *others in groups.values():
        points = ", ".join(finding.point for finding in (first, *others))
        message = f"{first.message.removesuffix('.')}: {points}."
        together.append(replace(first, point=f"{len(others) + 1} points", message=message) if others else first)
    return together


def _lines_of_finding(finding: Finding, width: int) -> list[str]:
    indent = " " * POINT_COLUMNS
    head = f"{MARKS[finding.status]} {finding.point}".ljust(POINT_COLUMNS - 1) + " "
    text = _wrapped(finding.message, width, head, indent)
    return text + (_wrapped(finding.remedy, width, f"{indent}→ ", f"{indent}  ") if finding.remedy else [])


def _wrapped(text: str, width: int, first: str, following: str) -> list[str]:
    # Partners and strangers wrote parts of some messages.
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=first,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(findings: Sequence[Finding]) -> str:
    count = counts(findings)
    warnings = "1 warning" if count["warning"] == 1 else f"{count['warning']} warnings"
    skipped = [f"{count['skipped']} not looked at"] if count["skipped"] else []
    parts = [f"{count['wrong']} wrong", warnings, f"{count['ok']} in order", *skipped]
    return f"{', '.join(parts)}."


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """How many findings have each status."""
    return {status: sum(finding.status == status for finding in findings) for status in MARKS}


def json_text(findings: Sequence[Finding]) -> str:
    """The findings as JSON: how many have each status, and each of them."""
    rows = [{name: row[name] for name in FIELDS} for row in map(asdict, findings)]
    return json.dumps({"counts": counts(findings), "findings": rows}, indent=2, ensure_ascii=False)
