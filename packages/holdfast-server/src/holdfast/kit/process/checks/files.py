"""Checks of the secret: that it is there, opens what is stored, and that no other user can read it.

Checks of the data directory: that it can be written to, has space, and that there is a backup.
"""

import asyncio
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, LiteralString

import msgspec
from msgspec import Struct

from holdfast.kit.process.checks.check_list import CheckList, duration
from holdfast.kit.process.checks.inspection import Inspection
from holdfast.kit.process.resources import secret_file
from holdfast.kit.security.service_secret import Secret, SecretTooShort, UnsealError

CHECKS = CheckList()

ENV_FILE = Path(".env")

MAX_BACKUP_SECONDS = 7 * 86_400

BACKUPS_FILE = "backups.json"
"""The file in the data directory in which `holdfast backup` stores when the last backup of each service was made."""


@CHECKS.point("secret")
async def check_secret_file(inspection: Inspection[Any]) -> None:
    """Whether there is a secret, and whether other users of this machine can read it."""
    await asyncio.to_thread(_check_secret, inspection)


def _check_secret(inspection: Inspection[Any]) -> None:
    settings, variable, file = inspection.settings, inspection.variable("secret_key"), secret_file(inspection.settings)
    is_in_file = not settings.secret_key and not settings.database_url
    if is_in_file and not file.exists():
        # The contents of the database say whether it was lost: see `check_sealed`.
        inspection.ok("There is no secret yet. The first start makes one.")
        return
    if not settings.secret_key and settings.database_url:
        inspection.wrong(
            f"{inspection.variable('database_url')} is set and {variable} is not.",
            f"Set {variable} to the secret of the service, the same on every machine. The first time, make one with: "
            "openssl rand -hex 32",
        )
    if is_in_file:
        try:
            inspection.secret()
        except SecretTooShort as error:
            inspection.wrong(str(error), f"Restore the file {file.resolve()} from the backup.")
        _check_mode(inspection, file)
    if _names_secrets(ENV_FILE):
        _check_mode(inspection, ENV_FILE)
    inspection.ok("There is a secret, and other users of this machine cannot read it.")


def _check_mode(inspection: Inspection[Any], file: Path) -> None:
    if file.stat().st_mode & 0o007:
        inspection.wrong(f"Every user of this machine can read {file.resolve()}.", f"Run: chmod o= {file.resolve()}")


def _names_secrets(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(word in text for word in ("_SECRET", "PASSWORD", "_DATABASE_URL", "_TOKEN"))


@CHECKS.point("secret")
async def check_sealed(inspection: Inspection[Any]) -> None:
    """Whether the secret opens what is stored: of each table the 25 oldest and the 25 newest rows."""
    variable, old = inspection.variable("secret_key"), inspection.variable("old_secret_key")
    rows = [
        (table.table, bytes(sealed))
        for table in inspection.process.sealed
        for (sealed,) in await inspection.database.tuples(
            f"(select sealed from {table.table} where sealed <> '' order by {table.key} limit 25) union all "
            f"(select sealed from {table.table} where sealed <> '' order by {table.key} desc limit 25)"
        )
    ]
    secret, settings, reseal = inspection.secret(), inspection.settings, f"holdfast {inspection.name} reseal"
    if secret is None and rows and settings.database_url:
        inspection.skipped(f"{variable} is not set")
    elif secret is None and rows:
        inspection.wrong(
            f"The file {secret_file(settings).resolve()} is missing, and only the secret in it opens what is stored.",
            f"Restore the file from the backup of the data directory, or set {variable} to that secret.",
        )
    elif secret and (unreadable := sorted({table for table, sealed in rows if not _opens(secret, sealed)})):
        inspection.wrong(
            f"The secret does not open what is stored in {', '.join(unreadable)}.",
            f"Set {variable} to the secret with which it was stored. After a change of the secret: set {old} to the "
            f"one before, then run: {reseal}",
        )
    elif secret and not all(_opens(Secret(secret.value, service=secret.service), sealed) for _, sealed in rows):
        inspection.warning(f"Some of what is stored is still encrypted with {old}.", f"Run: {reseal}")
    inspection.ok("The secret opens what is stored." if rows else "Nothing is stored that needs the secret.")


def _opens(secret: Secret, sealed: bytes) -> bool:
    try:
        secret.unseal(sealed)
    except UnsealError:
        return False
    return True


@CHECKS.point("data directory")
async def check_data_directory(inspection: Inspection[Any]) -> None:
    await asyncio.to_thread(check_directory, inspection, inspection.settings.data_dir)


def check_directory(inspection: Inspection[Any], directory: Path) -> None:
    """Check whether a directory, or the first one above it that exists, can be written to and has space."""
    directory = directory.resolve()
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        inspection.wrong(
            f"This user may not write to {existing}.",
            f"Run: chown -R USER {existing}, with the user of the service; or set HOLDFAST_DATA_DIR to another "
            "directory. Run this check as that user.",
        )
        return
    free, least = shutil.disk_usage(existing).free, inspection.limits.min_free_bytes
    size = f"{free / 1e9:.1f} GB" if free >= 1e8 else f"{free / 1e6:.0f} MB"
    message = f"{size} are free on the disk of {directory}."
    remedy = "Make the disk larger, delete what is not needed on it, or move the directory and set HOLDFAST_DATA_DIR."
    if free < 5 * least:
        inspection.add("wrong" if free < least else "warning", message, remedy)
    inspection.ok(message)


class _Backup(Struct):
    finished_at: datetime
    place: str = ""


@CHECKS.point("backups")
async def check_backups(inspection: Inspection[Any]) -> None:
    """Whether there is a backup that is new enough, if the database has data that cannot be made again."""
    table, reason = DATA[inspection.name]
    if not await inspection.database.value(f"select exists (select from {table})"):
        inspection.ok(f"{reason}: backups are asked for from then on.")
        return
    file = inspection.settings.data_dir / BACKUPS_FILE
    remedy = "Make one every day, to another machine: holdfast backup DIRECTORY. See docs/backup.md"
    try:
        backup = msgspec.json.decode(file.read_bytes(), type=dict[str, _Backup])[inspection.name]
    except (OSError, KeyError, msgspec.DecodeError):
        inspection.warning(f"No backup is known: {file.resolve()} names none.", remedy)
        return
    finished_at = backup.finished_at if backup.finished_at.tzinfo else backup.finished_at.replace(tzinfo=UTC)
    age, location = inspection.clock() - finished_at.timestamp(), f" It is in {backup.place}." if backup.place else ""
    message = f"The last backup is {duration(max(age, 0))} old.{location}"
    if age > MAX_BACKUP_SECONDS:
        inspection.warning(message, remedy)
    inspection.ok(message)


DATA: dict[str, tuple[LiteralString, str]] = {
    "events": ("registrations", "There are no registrations yet"),
    "inventory": ("ledger", "No stock was entered yet"),
}
"""The table of each service that needs backups once it has rows, and what is said before."""
