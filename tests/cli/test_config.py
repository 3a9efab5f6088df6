"""`holdfast config` shows the settings that services read, and finds faults in them."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from holdfast.cli import app
from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.settings import Settings
from holdfast.kit.environment.variables import unknown_in_environment, warn_of_unknown_variables
from tests.helpers.command_line import run_holdfast_in

PASSWORD = "hunter2hunter2"
KINDS: Sequence[type[Settings]] = (INVENTORY.settings, EVENTS.settings)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without `.env`, in an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        for field in kind.model_fields:
            monkeypatch.delenv(kind.variable(field), raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def restored_environment() -> Iterator[None]:
    """Takes away what `--env-file` has added."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["config", *words])


def rows(output: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in output.splitlines() if line.startswith("  ")]


def test_a_directory_that_the_user_may_not_enter_is_named(directory: Path) -> None:
    directory.chmod(0)
    user = os.geteuid()
    if user == 0:  # who may enter any directory
        os.seteuid(65534)
    try:
        table, report = run("show"), run("check")
    finally:
        os.seteuid(user)
        directory.chmod(0o700)

    for refusal in (table, report):
        assert f"{directory / '.env'} cannot be read: Permission denied." in str(refusal.exception)
        assert isinstance(refusal.exception, CannotStart)


def test_a_data_directory_that_the_user_may_not_enter_is_named(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = directory / "data"
    data_dir.mkdir(mode=0)
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(data_dir))
    user = os.geteuid()
    if user == 0:  # who may enter any directory
        directory.chmod(0o755)
        os.seteuid(65534)
    try:
        refusal = CliRunner().invoke(app, ["events", "migrate", "--dry-run"])
    finally:
        os.seteuid(user)

    assert str(data_dir) in str(refusal.exception)
    assert isinstance(refusal.exception, CannotStart)


def test_a_file_of_settings_that_is_not_utf_8_is_named(directory: Path) -> None:
    (directory / ".env").write_bytes("MAIL_FROM=Käse <a@b.example>".encode("latin-1"))

    for refusal in (run("show"), run("check"), CliRunner().invoke(app, ["events", "migrate"])):
        assert f"{directory / '.env'} cannot be read: it is not UTF-8." in str(refusal.exception)
        assert isinstance(refusal.exception, CannotStart)


def test_show_says_what_a_service_reads_and_from_where_without_secrets(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / ".env").write_text(
        f"EVENTS_DATABASE_URL=postgresql://ann:{PASSWORD}@db:5433/events?sslpassword={PASSWORD}\nSMTP_PASSWORD={PASSWORD}\n"
        "MCP_RATE_LIMIT=7"
    )
    (directory / "unit.env").write_text(f"EVENTS_SECRET_KEY={PASSWORD * 3}\n")
    monkeypatch.setenv("MCP_RATE_LIMIT", "9")
    monkeypatch.setenv("RATE_LIMIT_STORAGE_URL", f"redis://:{PASSWORD}@host:6379/1")
    words = ("show", "--service=events", "--env-file=unit.env")

    table, listed = run(*words), run(*words, "--changed", "--json")

    file = str(directory / ".env")
    assert ["EVENTS_DATABASE_URL", "postgresql://ann:***@db:5433/events", file] in rows(table.stdout)
    assert ["EVENTS_SECRET_KEY", "set, 42 characters", "environment"] in rows(table.stdout)
    assert ["RATE_LIMIT_STORAGE_URL", "redis://:***@host:6379/1", "environment"] in rows(table.stdout)
    assert ["MCP_RATE_LIMIT", "9", "environment"] in rows(table.stdout)
    assert ["SMTP_PORT", "0", "default"] in rows(table.stdout)
    assert len(rows(table.stdout)) == len(EVENTS.settings.model_fields) + 1
    assert f"Looked in the environment and in {file}." in table.stderr
    password = {"name": "SMTP_PASSWORD", "value": "set, 14 characters", "is_secret": True}
    events: list[dict[str, Any]] = json.loads(listed.stdout)["events"]
    assert {**password, "source": ".env", "file": file} in events
    assert len(events) == 5
    assert PASSWORD not in table.stdout + listed.stdout


def test_the_config_check_finds_all_faults_at_once_also_in_the_environment(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("check").exit_code == 0
    (directory / ".env").write_text("PLATFORM_FEE=7\nPOSTGRES_PASSWORD=x")
    monkeypatch.setenv("EVENTS_BASEURL", "https://events.example.com")
    monkeypatch.setenv("SMTP_USER", "holdfast")
    monkeypatch.setenv("DATABASE_POOL_SIZE", "ten")
    monkeypatch.setenv("INVENTORY_DATABASE_URL", "postgresql://db/inventory")

    checked = run_holdfast_in(directory, "config", "check", EVENTS_SECRET_KEY=PASSWORD)

    assert checked.returncode == 1
    file, meant = directory / ".env", "PLATFORM_FEE_PERCENT"
    assert {*checked.stdout.splitlines()} == {
        "✗ inventory: DATABASE_POOL_SIZE must be a whole number.",
        "✗ events: EVENTS_SECRET_KEY must have 32 or more characters, and has 14.",
        "✗ events: DATABASE_POOL_SIZE must be a whole number.",
        f"✗ PLATFORM_FEE in {file} is no setting, and a service does not start with it. Did you mean {meant}?",
        "✗ EVENTS_BASEURL in the environment is no setting, and is ignored. Did you mean EVENTS_BASE_URL?",
        "! SMTP_USER in the environment is no setting, and is ignored. Did you mean SMTP_USERNAME?",
    }

    monkeypatch.setenv("DATABASE_POOL_SIZE", "10")
    [inventory] = json.loads(run("check", "--service=inventory", "--json").stdout)["findings"][:1]
    assert inventory["variable"] == "INVENTORY_SECRET_KEY"
    assert "INVENTORY_DATABASE_URL is set and INVENTORY_SECRET_KEY is not." in inventory["message"]


def test_a_process_that_begins_to_serve_warns_of_names_that_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTS_BASEURL", PASSWORD)
    monkeypatch.setattr("holdfast.kit.environment.variables.log", structlog.get_logger())
    with capture_logs() as logs:
        warn_of_unknown_variables(EVENTS.settings)
        warn_of_unknown_variables(INVENTORY.settings)

    [warning] = logs
    assert (warning["log_level"], warning["variables"]) == (
        "warning",
        ["EVENTS_BASEURL (did you mean EVENTS_BASE_URL?)"],
    )


def test_a_setting_of_one_service_is_not_reported_as_a_misspelt_one_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in KINDS:
        for field in kind.model_fields:
            monkeypatch.setenv(kind.variable(field), "")

    assert [unknown_in_environment([kind]) for kind in KINDS] == [[], []]


def test_every_setting_that_is_a_secret_or_may_have_a_password_in_it_is_hidden() -> None:
    named = re.compile("SECRET|PASSWORD|TOKEN|DATABASE_URL|STORAGE_URL|_KEY$")
    variables = {kind.variable(name) for kind in KINDS for name, field in kind.model_fields.items() if field.repr}

    assert {name for name in variables if named.search(name)} == {"OAUTH_TOKEN_RATE_LIMIT", "MAX_STREAMS_PER_KEY"}


def test_a_new_secret_is_the_only_line_long_enough_and_different_each_time(directory: Path) -> None:
    made = [run_holdfast_in(directory, "secret", "new") for _ in range(2)]
    secrets = [done.stdout.splitlines() for done in made]

    assert [len(lines) for lines in secrets] == [1, 1]
    assert secrets[0] != secrets[1]
    assert "set EVENTS_SECRET_KEY or INVENTORY_SECRET_KEY to it" in made[0].stderr
    checked = run_holdfast_in(
        directory, "config", "check", EVENTS_SECRET_KEY=secrets[0][0], INVENTORY_SECRET_KEY=secrets[1][0]
    )
    assert checked.returncode == 0
    assert list(directory.iterdir()) == []
