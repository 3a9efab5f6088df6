"""Ends the servers in data directories of tests and removes the directories, once the process that made them has ended.

That process does it itself, unless it is killed. Then the servers would run on, and fill the memory of the machine.
Usage: the paths of the directories as lines of the input, which ends with that process.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path

POLL_SECONDS = 0.05
ORDERLY_SECONDS = 10
"""Seconds that servers have to end by themselves: a server that is killed leaves shared memory behind."""


def main() -> None:
    directories = [Path(line) for line in sys.stdin.read().splitlines()]
    began = time.monotonic()
    while servers := servers_in(directories):
        number = signal.SIGQUIT if time.monotonic() < began + ORDERLY_SECONDS else signal.SIGKILL
        for pid in servers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(POLL_SECONDS)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


def servers_in(directories: Collection[Path]) -> list[int]:
    """The processes of PostgreSQL that work in these directories."""
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if is_server_in(process, directories)]


def is_server_in(process: Path, directories: Collection[Path]) -> bool:
    try:
        is_postgres = (process / "comm").read_text() == "postgres\n"
        return is_postgres and not {*directories}.isdisjoint((process / "cwd").readlink().parents)
    except OSError:  # it has ended, or belongs to another user
        return False


if __name__ == "__main__":
    main()
