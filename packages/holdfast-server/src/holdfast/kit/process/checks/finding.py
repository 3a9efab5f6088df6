"""What a check has found, and from when on something is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.kit.background.leaders import SESSION_TIMEOUT_SECONDS
from holdfast.kit.process.database_health import MAX_CLOCK_DIFFERENCE_SECONDS
from holdfast_verify.terminal import sentences

Status = Literal["ok", "warning", "wrong", "skipped"]


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    message    what is so, or what is wrong
    remedy     what to do, with the command or the setting; empty if there is nothing to do
    """

    status: Status
    message: str
    remedy: str = ""
    point: str = ""
    service: str = ""


Findings = Sequence[Finding]


def ok(message: str) -> Finding:
    return Finding("ok", sentences(message))


def warning(message: str, remedy: str) -> Finding:
    return Finding("warning", sentences(message), remedy)


def wrong(message: str, remedy: str) -> Finding:
    return Finding("wrong", sentences(message), remedy)


def skipped(reason: str) -> Finding:
    """A finding that a point was not looked at. `reason` follows "because"."""
    return Finding("skipped", sentences(f"Not looked at, because {reason}."))


@dataclass(frozen=True)
class CheckLimits:
    """From when on something is wrong, or a warning.

    min_free_bytes         free space of a disk, below which it is wrong; below five times as much it is a warning
    max_clock_difference   seconds between the clock of this machine and that of the database
    max_overdue_seconds    how long work that is due may wait
    max_idle_seconds       how long a leader may run no statement; each runs one a second
    max_mail_seconds       how long mails may wait
    max_backup_days        the age of the last backup
    """

    min_free_bytes: int = 200_000_000
    max_clock_difference: float = MAX_CLOCK_DIFFERENCE_SECONDS
    max_overdue_seconds: float = 60.0
    max_idle_seconds: float = 3 * SESSION_TIMEOUT_SECONDS
    max_mail_seconds: float = 900.0
    max_backup_days: float = 7.0
