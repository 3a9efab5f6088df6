"""Commands that only look create nothing, and say where they looked."""

from pathlib import Path

import pytest

from tests.helpers.command_line import run_holdfast, run_holdfast_in
from tests.helpers.data_directories import scratch_directory

LOOKING = [
    *("events jobs", "events jobs --retry 1", "events migrate --dry-run", "events key list", "events organizer list"),
    *(
        "events console-link ada-events",
        "events mail list",
        "events mail retry 1",
        "events organizer subjects ada-events",
        "inventory jobs",
        "inventory mail list",
        "inventory mail retry 1",
        "inventory migrate --dry-run",
        "inventory shop list",
    ),
    *("inventory webhooks", "inventory webhooks --retry 1", "inventory shop locations ada.myshopify.com"),
    *("inventory shop key ada.myshopify.com", "inventory check", "inventory sign-proxy-url ada.myshopify.com"),
    *("inventory shop owner ada.myshopify.com ada@example.com", "inventory console-link ada.myshopify.com"),
]


@pytest.mark.parametrize("command", LOOKING)
def test_a_command_that_only_reads_creates_no_database_and_says_where_it_looked(command: str, tmp_path: Path) -> None:
    done = run_holdfast_in(tmp_path, *command.split())

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("There is no ")
    assert f"in the data directory {tmp_path / '.holdfast'}." in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_looks_says_which_data_directory_it_found_and_leaves_it_as_it_was() -> None:
    directory = scratch_directory()
    here = {"HOLDFAST_DATA_DIR": str(directory)}
    key = run_holdfast("inventory", "shop", "add", "ada.myshopify.com", **here).stdout.splitlines()[-1]

    listed = run_holdfast("inventory", "shop", "list", **here)
    result = run_holdfast("inventory", "shop", "key", "ada.myshopify.com", **here)
    unknown = run_holdfast("inventory", "shop", "key", "ben.myshopify.com", **here)
    of_events = [run_holdfast("events", "organizer", "list", **here) for _ in range(2)]

    assert (listed.stdout, listed.stderr) == (
        "1\tada.myshopify.com\t1\tnot connected\n",
        f"Looked in the data directory {directory}.\n",
    )
    assert result.stdout == f"{key}\n"
    assert unknown.stderr == (
        f"No shop has the domain ben.myshopify.com. This was looked for in the data directory {directory}.\n"
    )
    assert [result.stderr.partition(" in ")[0] for result in of_events] == ["There is no events database"] * 2


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("organizer list", ""),
        ("key list", ""),
        ("mail list", ""),
        ("jobs", "No job has failed for good.\n"),
        ("migrate --dry-run", "The schema is up to date.\n"),
    ],
)
def test_a_command_that_looks_says_that_it_found_nothing_and_where(
    database_url: str, command: str, output: str
) -> None:
    done = run_holdfast("events", *command.split(), EVENTS_DATABASE_URL=database_url)

    assert (done.returncode, done.stdout) == (0, output)
    assert done.stderr == "Looked in the database that EVENTS_DATABASE_URL names.\n"
