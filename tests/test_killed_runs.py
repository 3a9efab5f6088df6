"""A run of tests that is killed leaves nothing running."""

import contextlib
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from tests.helpers.data_directories import can_connect, wait_until
from tests.helpers.data_directory_watcher import servers_in
from tests.isolation import ROOT

MAKE = {
    "scratch directory": "directory = scratch_directory()",
    "data directory": "block = data_directory(); directory = block.__enter__()",
}

DATABASE = """
import sys
from holdfast.kit.postgres.bundled import database_url
from tests.helpers.data_directories import data_directory, scratch_directory
{make}
print(directory, database_url(directory, "events"), flush=True)
sys.stdin.read()
"""

SERVICE = """
import sys
from tests.helpers.data_directories import scratch_directory
from tests.helpers.processes import Process
print(Process("", scratch_directory()).id, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def killed_at_the_end(program: str) -> Generator[list[str]]:
    """A process that runs a program, and is killed after the block; the words of its first line."""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().split()
        process.kill()


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_the_server_of_a_process_that_is_killed_ends_and_its_data_directory_is_removed(make: str) -> None:
    with killed_at_the_end(DATABASE.format(make=make)) as (directory, url):
        assert can_connect(url)

    wait_until(lambda: not Path(directory).exists())
    assert not servers_in([Path(directory)])


def test_the_service_that_a_killed_process_has_started_ends() -> None:
    with killed_at_the_end(SERVICE) as (service,):
        assert psutil.pid_exists(int(service))

    wait_until(lambda: not psutil.pid_exists(int(service)))
