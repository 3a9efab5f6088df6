"""Checks of the data directory: that it can be written to, has space, and that there is a backup."""

import asyncio
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks.finding import Finding, Findings, ok, warning, wrong
from holdfast.kit.process.checks.inspection import Inspection
from holdfast.kit.process.checks.wording import duration

BACKUPS_FILE = "backups.json"
"""The file in the data directory in which `holdfast backup` stores when the last backup of each service was made."""

WARNING_FACTOR = 5
"""How many times the least free space there must be, so that there is no warning."""


class _Backup(Struct):
    finished_at: datetime
    place: str = ""


async def check_data_directory(inspection: Inspection[Any]) -> Findings:
    """Whether the data directory can be written to, and has space."""
    return await asyncio.to_thread(look_at_directory, inspection, inspection.settings.data_dir, "HOLDFAST_DATA_DIR")


def look_at_directory(inspection: Inspection[Any], directory: Path, variable: str) -> Findings:
    """Whether a directory, or the first one above it that exists, can be written to and has space.

    variable    the setting that names the directory
    """
    directory = directory.resolve()
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return [
            wrong(
                f"This user may not write to {existing}.",
                f"Run: chown -R USER {existing}, with the user of the service; or set {variable} to another directory. "
                "Run this check as that user.",
            )
        ]
    free, least = shutil.disk_usage(existing).free, inspection.limits.min_free_bytes
    message = f"{gigabytes(free)} are free on the disk of {directory}."
    remedy = f"Make the disk larger, delete what is not needed on it, or move the directory and set {variable}."
    if free < least:
        return [wrong(message, remedy)]
    if free < WARNING_FACTOR * least:
        return [warning(message, remedy)]
    return [ok(message)]


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


async def check_backups(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether there is a backup that is new enough, if the database has data that cannot be made again."""
    table, nothing = (
        ("registrations", "Nobody has registered yet")
        if inspection.name == "events"
        else ("ledger", "No stock was entered yet")
    )
    if not await reader.value(f"select exists (select from {table})"):
        return [ok(f"{nothing}: backups are asked for from then on.")]
    return [await asyncio.to_thread(_backup_finding, inspection.settings, inspection)]


def _backup_finding(settings: Settings, inspection: Inspection[Any]) -> Finding:
    file = settings.data_dir / BACKUPS_FILE
    remedy = "Make one every day, to another machine: holdfast backup DIRECTORY. See docs/backup.md"
    try:
        backups = msgspec.json.decode(file.read_bytes(), type=dict[str, msgspec.Raw])
        backup = msgspec.json.decode(backups[inspection.name], type=_Backup)
    except (OSError, KeyError, msgspec.DecodeError):
        backup = None
    if backup is None:
        return warning(f"No backup is known: {file.resolve()} names none.", remedy)
    now = datetime.fromtimestamp(inspection.clock(), UTC)
    finished_at = backup.finished_at if backup.finished_at.tzinfo else backup.finished_at.replace(tzinfo=UTC)
    age = (now - finished_at).total_seconds()
    place = f" It is in {backup.place}." if backup.place else ""
    if age > inspection.limits.max_backup_days * 86_400:
        return warning(f"The last backup is {duration(age)} old.{place}", remedy)
    return ok(f"The last backup is {duration(max(age, 0))} old.{place}")
