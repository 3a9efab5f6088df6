"""The lines of the README work as printed."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.faults.processes import HOLDFAST

README = Path(__file__).parents[2] / "README.md"
ADDRESS = "127.0.0.1:8002"


def commands() -> str:
    """Every shell line the README prints, in order."""
    return "\n".join(re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
def test_a_first_registration_by_the_readmes_own_lines(tmp_path: Path, data_dir: Path) -> None:
    port = free_port()
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(data_dir)}
    up = subprocess.Popen(
        [HOLDFAST, "up", "--events-port", str(port)], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert up.stdout
        started = "".join(iter(up.stdout.readline, "Stop with Ctrl-C.\n"))
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands().replace(ADDRESS, f"127.0.0.1:{port}")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        up.terminate()
        up.communicate()

    assert f"http://127.0.0.1:{port}/docs" in started
    assert "hf_" in started
    assert ran.stderr == ""
    assert '"status":"accepted"' in ran.stdout
    assert '"status":"registered"' in ran.stdout


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 100
