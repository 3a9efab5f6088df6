"""The findings of `holdfast check` on both services, as text and as JSON."""

import asyncio
import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import typer

from holdfast.events import checks as events
from holdfast.events.service import EVENTS
from holdfast.inventory import checks as inventory
from holdfast.inventory.service import INVENTORY
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.settings import Settings
from holdfast.kit.environment.variables import read_settings
from holdfast.kit.process.checks.check_list import CheckList, run_checks
from holdfast.kit.process.checks.inspection import Finding, Inspection, open_inspection
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.service_secret import SecretTooShort
from holdfast_verify.terminal import printable

SERVICES: dict[str, tuple[ServiceProcess[Any, Any], CheckList]] = {
    "events": (EVENTS, events.CHECKS),
    "inventory": (INVENTORY, inventory.CHECKS),
}
"""The services with their checks."""

MARKS = {"ok": "✓", "warning": "!", "wrong": "✗", "skipped": "-"}

POINT_COLUMNS = 19
"""Columns for the mark and the name of a point."""


async def find(services: Sequence[str], points: Sequence[str] = ()) -> list[Finding]:
    """The findings on services, in the order in which they are shown.

    points    the only points that are looked at; none: all

    Raises `typer.BadParameter` for a point that does not exist.
    """
    known_points = {"settings", "database", *(check.point for _, checks in SERVICES.values() for check in checks)}
    for point in points:
        if point not in known_points:
            raise typer.BadParameter(f"There is no point {point}. The points are: {', '.join(sorted(known_points))}.")
    settings: dict[str, Settings] = {}
    findings: dict[str, list[Finding]] = {}
    for service in services:
        try:
            settings[service] = await asyncio.to_thread(read_settings, SERVICES[service][0].settings)
            message = f"{SERVICES[service][0].title} is not set up here: it has no database and no settings."
            findings[service] = [Finding("skipped", f"Not looked at, because {message}", "", "settings", service)]
        except CannotStart as error:
            remedy = "Correct these settings, in the environment of the service or in .env. Then run the check again."
            findings[service] = [Finding("wrong", str(error), remedy, "settings", service)]
    in_use = [service for service in settings if _is_in_use(settings[service])]
    if not in_use and len(settings) == len(services):
        in_use = [*settings]  # none is set up: this says where each was looked for
    results = await asyncio.gather(*(inspect(service, settings[service], points) for service in in_use))
    findings.update({service: of_service for service, (of_service, _) in zip(in_use, results, strict=True)})
    of_services = [finding for service in services for finding in findings[service]]
    return of_services if points else [*of_services, *compare([inspection for _, inspection in results])]


def _is_in_use(settings: Settings) -> bool:
    """Whether anything says that a service is used here."""
    if settings.database_url or settings.secret_key or settings.base_url:
        return True
    try:
        return (settings.data_dir / "postgres" / "PG_VERSION").exists()
    except OSError:
        return True  # it cannot be looked at: the checks say why


async def inspect(
    service: str, settings: Settings, points: Sequence[str] = ()
) -> tuple[list[Finding], Inspection[Any]]:
    """Look at a service with these settings. Returns the findings, those on settings and database first."""
    process, checks = SERVICES[service]
    inspection = await open_inspection(process, settings)
    findings = [
        Finding("ok", "All settings can be read.", "", "settings", service),
        *(replace(reached, point="database", service=service) for reached in inspection.findings),
        *await run_checks(inspection, [check for check in checks if not points or check.point in points]),
    ]
    return [
        finding for finding in findings if not points or finding.point in points or finding.status == "wrong"
    ], inspection


def compare(inspections: Sequence[Inspection[Any]]) -> Iterator[Finding]:
    """The findings on what the services must not have in common."""
    if len(inspections) < 2:
        return
    base_url = inspections[0].settings.base_url
    if base_url and all(inspection.settings.base_url == base_url for inspection in inspections):
        variables = " and ".join(sorted(inspection.variable("base_url") for inspection in inspections))
        remedy = "Give each an address of its own, such as https://events.example.com and https://stock.example.com"
        yield Finding("wrong", f"{variables} are the same address.", remedy, "base address", "both")
    try:
        secrets = [secret.value for inspection in inspections if (secret := inspection.secret())]
    except (SecretTooShort, OSError):
        secrets = []  # the point "secret" says so
    if len(secrets) > len({*secrets}):
        message = "Both services have the same secret: if it leaks, both are open."
        yield Finding("warning", message, "Rotate the secret of one of them: docs/deploy/secrets.md", "secret", "both")


def lines_of(findings: Sequence[Finding], width: int) -> list[str]:
    """The findings as text, at most `width` columns wide where words allow it."""
    lines = list[str]()
    for service, of_service in groupby(_with_skipped_points_together(findings), lambda finding: finding.service):
        title = SERVICES[service][0].title if service in SERVICES else "Both services"
        lines += ["", title, *(line for finding in of_service for line in _lines_of_finding(finding, width))]
    return [*lines[1:], "", _summary(findings)]


def _with_skipped_points_together(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, with one line for the points of a service that were not looked at for the same reason."""
    skipped: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.status == "skipped":
            skipped.setdefault((finding.service, finding.message), []).append(finding)
    for finding in findings:
        same = skipped.get((finding.service, finding.message), [finding])
        if len(same) == 1:
            yield finding
        elif finding is same[0]:
            points = ", ".join(finding.point for finding in same)
            message = f"{finding.message.removesuffix('.')}: {points}."
            yield replace(finding, point=f"{len(same)} points", message=message)


def _lines_of_finding(finding: Finding, width: int) -> list[str]:
    indent = " " * POINT_COLUMNS
    head = f"{MARKS[finding.status]} {finding.point}".ljust(POINT_COLUMNS - 1) + " "
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    return [
        # Partners and strangers wrote parts of some messages.
        *wrap(printable(finding.message), initial_indent=head, subsequent_indent=indent),
        *wrap(printable(finding.remedy), initial_indent=f"{indent}→ ", subsequent_indent=f"{indent}  "),
    ]


def _summary(findings: Sequence[Finding]) -> str:
    count = counts(findings)
    warnings = "1 warning" if count["warning"] == 1 else f"{count['warning']} warnings"
    skipped = f", {count['skipped']} not looked at" if count["skipped"] else ""
    return f"{count['wrong']} wrong, {warnings}, {count['ok']} in order{skipped}."


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """How many findings have each status."""
    return {status: sum(finding.status == status for finding in findings) for status in MARKS}


def json_text(findings: Sequence[Finding]) -> str:
    """The findings as JSON: how many have each status, and each of them."""
    fields = ("service", "point", "status", "message", "remedy")
    rows = [{name: getattr(finding, name) for name in fields} for finding in findings]
    return json.dumps({"counts": counts(findings), "findings": rows}, indent=2, ensure_ascii=False)
