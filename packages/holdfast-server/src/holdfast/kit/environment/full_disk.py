"""A disk without room: how it is found in errors and in the output of programs, and what an operator is told."""

import errno
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

FULL = re.compile(r"No space left on device|Disk quota exceeded|wrote only \d+ of \d+ bytes")
"""What the operating system and PostgreSQL say of a disk without room."""

DISK_FULL_SQLSTATE = "53100"
"""The error `disk_full` of PostgreSQL."""


MIN_FREE_BYTES = 16 * 2**20
"""With less, PostgreSQL can be unable to start: a segment of its write-ahead log has this size."""


def reason_in(output: str) -> str | None:
    """The last line of a program's output that names a disk without room; None if there is none."""
    lines = [line.strip() for line in output.splitlines() if FULL.search(line)]
    return lines[-1] if lines else None


def reason_of(error: BaseException) -> str | None:
    """What an error, or one that caused it, says of a disk without room; None if it is about something else."""
    reasons = [reason for cause in _causes(error) if (reason := _reason(cause))]
    return reasons[-1] if reasons else None


def _reason(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
    text = str(error).split("\n", 1)[0]
    is_full = getattr(error, "sqlstate", None) == DISK_FULL_SQLSTATE or FULL.search(text)
    return text if is_full else None


def reason_on(directory: Path) -> str | None:
    """How little room the disk of a directory has, for a program that failed and could not log why; None if enough."""
    free_bytes = shutil.disk_usage(directory).free
    return f"{free_bytes // 1024} kB are free" if free_bytes < MIN_FREE_BYTES else None


def full_disk_text(reason: str, directory: Path) -> str:
    """What an operator does about it, for a data directory."""
    return (
        f"The disk of {directory} is full: {reason.rstrip('.')}. Make room on it, or set HOLDFAST_DATA_DIR to a "
        "directory on another disk, and start again."
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
