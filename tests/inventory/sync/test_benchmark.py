"""The benchmark of levels runs to its end, and finds that all books agree."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SMALL = ("--per-second", "10", "--seconds", "2", "--many", "2", "--pools", "2", "--variants", "300", "--rounds", "1")


@pytest.mark.skipif("HOLDFAST_SOAK" not in os.environ, reason="it starts five processes, and waits for imports")
def test_the_benchmark_measures_orders_and_an_import() -> None:
    command = [sys.executable, "-m", "benchmarks.sync", *SMALL]
    ran = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, check=False, text=True, timeout=280
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "webhook received → level accepted, p99" in ran.stdout
    assert "Import of 300 variants" in ran.stdout
