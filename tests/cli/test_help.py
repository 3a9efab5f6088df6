"""Every command explains itself at once: it imports only what an explanation needs."""

import subprocess
import sys

import pytest

HELP = [
    *("", "up", "check", "events", "events serve", "events worker", "events migrate", "events jobs", "events key"),
    *("events key create", "events key list", "events organizer", "events organizer list", "events organizer link"),
    *("events person", "events person export", "events person erase"),
    *("events app", "events app list", "events app disconnect"),
    *("events mail", "events mail list", "inventory mail", "inventory mail retry"),
    *("inventory", "inventory serve", "inventory shop", "inventory shop list", "inventory shop key"),
    *(
        "inventory shop locations",
        "inventory shop owner",
        "inventory console-link",
        "inventory webhooks",
        "inventory platform-double",
    ),
    *("inventory sign-proxy-url", "inventory check"),
]
SLOW = {"asyncio", "cryptography", "jinja2", "msgspec", "procrastinate", "psycopg", "pydantic_settings", "starlette"}


@pytest.mark.parametrize("command", HELP)
def test_help_imports_nothing_that_takes_time(command: str) -> None:
    explained = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", *command.split(), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    imported = {line.rpartition("|")[2].strip() for line in explained.stderr.splitlines()}
    assert "holdfast.cli" in imported
    assert imported & SLOW == set()
    assert "Usage" in explained.stdout
