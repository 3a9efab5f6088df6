"""The memory of a process at rest: a service that has been started, and has had no requests.

The figure is the proportional set size (PSS): memory that several processes share counts in equal parts. The resident
memory counts all of it; so it is the same whatever else the machine does.

python -m benchmarks.memory
"""

import os
import subprocess
import time

import psutil
import typer
from rich.table import Table

from benchmarks.stage import holdfast, say, server
from benchmarks.streams import is_listening
from holdfast.kit.postgres import bundled

REST_SECONDS = 8.0
"""Seconds after the start until memory is read: loops have run, and caches are filled."""

GOALS = {"events": 80, "inventory": 70}
"""Megabytes."""


def main() -> None:
    """Measure the memory of each service at rest."""
    table = Table(title="Memory of a process at rest, MB (PSS)")
    for heading in ("service", "all", "of its own", "resident", "goal"):
        table.add_column(heading, justify="left" if heading == "service" else "right")
    directory = bundled.scratch_directory()
    for service, goal in GOALS.items():
        environment = {
            **os.environ,
            f"{service.upper()}_DATABASE_URL": bundled.database_url(directory, service),
            f"{service.upper()}_SECRET_KEY": "a secret that only benchmarks use",
            "HOLDFAST_DATA_DIR": str(directory),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        subprocess.run([holdfast(), service, "migrate"], env=environment, check=True, capture_output=True)
        command = [holdfast(), service, "serve", "--port", "0"]
        # An installation has the bytecode of its modules. Here the first start writes it: to compile takes memory.
        with server(command, environment):
            pass
        with server(command, environment) as port:
            process = next(process for process in psutil.process_iter() if is_listening(process, port))
            time.sleep(REST_SECONDS)
            memory = process.memory_full_info()
            sizes = (f"{size / 2**20:.1f}" for size in (memory.pss, memory.uss, memory.rss))
            table.add_row(service, *sizes, f"≤ {goal}")
    say(table)


if __name__ == "__main__":
    typer.run(main)
