"""Checks of the secret: that it is there, opens what is stored, and is read by nobody else.

Checks of the data directory: that it can be written to, has space, and that there is a backup.
"""

import asyncio
import os
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.kit.environment.settings import Settings
from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks.inspection import Finding, Findings, Inspection, duration, ok, skipped, warning, wrong
from holdfast.kit.process.resources import secret_file
from holdfast.kit.security.secrets import Secret, SecretTooShort, UnsealError

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


SAMPLE_SIZE = 50
"""Rows of each table that are opened: half of them the oldest, half the newest."""

ENV_FILE = Path(".env")


async def check_secret_file(inspection: Inspection[Any]) -> Findings:
    """Whether there is a secret, and whether other users of this machine can read it."""
    return await asyncio.to_thread(_look_at_files, inspection)


def _look_at_files(inspection: Inspection[Any]) -> Findings:
    settings, file, variable = inspection.settings, secret_file(inspection.settings), inspection.variable("secret_key")
    findings = list[Finding]()
    if not settings.secret_key and settings.database_url:
        findings.append(
            wrong(
                f"{inspection.variable('database_url')} is set and {variable} is not.",
                f"Set {variable} to the secret of the service, the same on every machine. "
                "The first time, make one with: openssl rand -hex 32",
            )
        )
    elif not settings.secret_key and not file.exists():
        # Whether it was lost, the contents of the database say: see `check_sealed`.
        return [ok("There is no secret yet. The first start makes one.")]
    elif not settings.secret_key:
        try:
            inspection.secret()
        except SecretTooShort as error:
            findings.append(wrong(str(error), f"Restore the file {file.resolve()} from the backup."))
        findings += _open_to_others(file)
    if _names_secrets(ENV_FILE):
        findings += _open_to_others(ENV_FILE)
    return findings or [ok("There is a secret, and other users of this machine cannot read it.")]


def _open_to_others(file: Path) -> Findings:
    mode = stat.S_IMODE(file.stat().st_mode)
    if not mode & 0o007:
        return []
    return [wrong(f"Every user of this machine can read {file.resolve()}.", f"Run: chmod o= {file.resolve()}")]


def _names_secrets(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return any(word in text for word in ("_SECRET", "PASSWORD", "_DATABASE_URL", "_TOKEN"))


async def check_sealed(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether the secret opens what is stored."""
    secret = inspection.secret()
    variable, old = inspection.variable("secret_key"), inspection.variable("old_secret_key")
    rows = [
        (table.table, sealed)
        for table in inspection.product.sealed
        for (sealed,) in await reader.tuples(
            f"""
            (select sealed from {table.table} where sealed <> '' order by {table.key} limit %(half)s)
            union all
            (select sealed from {table.table} where sealed <> '' order by {table.key} desc limit %(half)s)
            """,
            {"half": SAMPLE_SIZE // 2},
        )
    ]
    if secret is None:
        if rows and inspection.settings.database_url:
            return [skipped(f"{variable} is not set")]
        if rows:
            file = secret_file(inspection.settings).resolve()
            return [
                wrong(
                    f"The file {file} is missing, and only the secret in it opens what is stored.",
                    f"Restore the file from the backup of the data directory, or set {variable} to that secret.",
                )
            ]
        return [ok("Nothing is stored that needs the secret.")]
    unreadable = sorted({table for table, sealed in rows if not _opens(secret, sealed)})
    if unreadable:
        return [
            wrong(
                f"The secret does not open what is stored in {', '.join(unreadable)}.",
                f"Set {variable} to the secret with which it was stored. After a change of the secret: set {old} to "
                f"the one before, then run: holdfast {inspection.name} reseal",
            )
        ]
    present = Secret(secret.value, service=secret.service)
    if any(not _opens(present, sealed) for _, sealed in rows):
        return [
            warning(
                f"Some of what is stored is still encrypted with {old}.",
                f"Run: holdfast {inspection.name} reseal",
            )
        ]
    return [ok("The secret opens what is stored." if rows else "Nothing is stored that needs the secret.")]


def _opens(secret: Secret, sealed: bytes) -> bool:
    try:
        secret.unseal(bytes(sealed))
    except UnsealError:
        return False
    return True
