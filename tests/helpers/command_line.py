"""The command `holdfast`, as tests run it."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

from tests.helpers.events_service import Service
from tests.helpers.forking import forks
from tests.helpers.processes import HOLDFAST
from tests.helpers.serving import startup_output

SECRET_SETTINGS = {"EVENTS_SECRET_KEY": "a secret that only these tests use"}


def run_holdfast(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_holdfast_in(None, *words, **environment)


def run_holdfast_in(directory: Path | None, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return forks().run([HOLDFAST, *words], directory or Path.cwd(), {**os.environ, **SECRET_SETTINGS, **environment})


async def run_events_command(service: Service, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command of the events service says, on the database of a service that runs here."""
    url = service.database.url
    return await asyncio.to_thread(run_holdfast, "events", *words, EVENTS_DATABASE_URL=url, **environment)


@contextlib.contextmanager
def run_up(data_dir: Path, *ports: str, **settings: str) -> Generator[str]:
    """`holdfast up` as long as the block lasts; what it says once it serves."""
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(data_dir), **settings}
    reads, writes = os.pipe()
    with os.fdopen(reads) as output:
        with os.fdopen(writes) as out:
            up = forks().start([HOLDFAST, "up", *ports], Path.cwd(), environment, out.fileno())
        try:
            yield startup_output(output)
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait(60)
