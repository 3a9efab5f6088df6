"""A process that serves loads no library that only a rare task needs: each takes megabytes of every process."""

import os
import subprocess
import sys

import pytest

RARE = ("PIL.", "icalendar.", "rich.", "segno.")
"""Pillow draws covers, icalendar writes calendars and segno draws QR codes, in the process that is asked for the first
one. rich draws on terminals."""


@pytest.mark.parametrize("service", ["events", "inventory"])
def test_serving_imports_no_library_for_images_calendars_codes_or_terminals(service: str) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    served = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", service, "serve", "--port", "0"],
        env={
            **os.environ,
            f"{service.upper()}_DATABASE_URL": nowhere,
            f"{service.upper()}_SECRET_KEY": "a secret that only this test uses",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    imported = {line.rpartition("|")[2].strip() for line in served.stderr.splitlines()}
    assert f"holdfast.{service}.service" in imported
    assert [name for name in imported if name.startswith(RARE)] == []
