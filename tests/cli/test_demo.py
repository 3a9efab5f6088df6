"""`holdfast demo`: example data for services that are started one by one."""

import re
from pathlib import Path

import httpx2

from tests.helpers.command_line import run_holdfast
from tests.helpers.processes import Process

INVENTORY, EVENTS = "https://inventory.example.com", "https://events.example.com"


def test_the_demo_data_is_stored_once_and_its_public_addresses_are_printed_each_time(
    database_url: str, inventory_url: str, tmp_path: Path
) -> None:
    process = Process(database_url, tmp_path, base_url=EVENTS)
    settings = {
        "HOLDFAST_DATA_DIR": str(tmp_path),
        "EVENTS_DATABASE_URL": database_url,
        "EVENTS_BASE_URL": EVENTS,
        "EVENTS_SECRET_KEY": (tmp_path / "events.secret").read_text().strip(),
        "INVENTORY_DATABASE_URL": inventory_url,
        "INVENTORY_BASE_URL": INVENTORY,
        "INVENTORY_SECRET_KEY": "i" * 43,
    }
    try:
        first, second = run_holdfast("demo", **settings), run_holdfast("demo", **settings)
        assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
        paths = re.findall(rf"^  (?:event page|waiting room|organizer) +{EVENTS}(/\S+)$", first.stdout, re.MULTILINE)
        answers = [httpx2.get(process.url + path).status_code for path in paths]
    finally:
        process.kill()

    assert answers == [200, 200, 200]
    assert re.search(r"^  admin key +hf_\S+$", first.stdout, re.MULTILINE)
    assert re.search(rf"^  console +{INVENTORY}/sign-in/\S+$", first.stdout, re.MULTILINE)
    assert "admin key" not in second.stdout
    assert [line for line in first.stdout.splitlines() if "page " in line] == [
        line for line in second.stdout.splitlines() if "page " in line
    ]


def test_the_demo_without_migrations_stores_nothing_and_names_the_command(tmp_path: Path, database_url: str) -> None:
    settings = {"HOLDFAST_DATA_DIR": str(tmp_path), "EVENTS_DATABASE_URL": database_url}
    refusal = run_holdfast("demo", INVENTORY_DATABASE_URL=database_url, INVENTORY_SECRET_KEY="i" * 43, **settings)

    assert refusal.returncode == 1
    assert "Traceback" not in refusal.stderr
    assert "Holdfast Events" in refusal.stderr
