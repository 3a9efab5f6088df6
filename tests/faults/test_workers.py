"""The worker processes of `--workers N` end with the process that started them."""

import os
import re
import signal
import socket
from pathlib import Path

import psutil

from tests.helpers.data_directories import wait_until
from tests.helpers.processes import running_processes


def takes_connections(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_workers_whose_parent_was_killed_end_and_free_the_port(database_url: str, tmp_path: Path) -> None:
    with running_processes(database_url, tmp_path, 1, "--workers", "2") as (process,):
        port = int(re.split("[:/]", process.url)[-1])
        parent = psutil.Process(process.id)
        wait_until(
            lambda: len([child for child in parent.children() if "spawn_main" in " ".join(child.cmdline())]) == 2, 30
        )
        children = parent.children(recursive=True)

        os.kill(process.id, signal.SIGKILL)

        _, living = psutil.wait_procs(children, timeout=20)
        assert living == []
        assert not takes_connections(port)
