"""Checks of the secret: that it is there, opens what is stored, and is read by nobody else."""

import asyncio
import stat
from pathlib import Path
from typing import Any

from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks.finding import Finding, Findings, ok, skipped, warning, wrong
from holdfast.kit.process.checks.inspection import Inspection
from holdfast.kit.process.resources import secret_file
from holdfast.kit.security.secrets import Secret, SecretTooShort, UnsealError

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
