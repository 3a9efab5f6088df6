"""The benchmarks of growth run to their end: the rows they write fit the present schema."""

import subprocess
import sys
from pathlib import Path

import pytest

SIZES = {
    "events": ("--registrations", "400", "--events", "40", "--queues", "10", "--organizers", "10", "--prices", "40"),
    "inventory": ("--entries", "100", "--variants", "100", "--shops", "10"),
}


@pytest.mark.parametrize("service", SIZES)
def test_the_benchmark_of_growth_measures_hot_paths_and_lists(service: str) -> None:
    few = ("--share", "2", "--requests", "100", "--rounds", "1", "--pages", "1")
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", "--service", service, *SIZES[service], *few],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=False,
        text=True,
        timeout=280,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"Lists of the {service} service" in ran.stdout
    assert f"Hot paths of the {service} service" in ran.stdout
