"""The page on one machine, with the program and the units that it copies."""

import os
import re
import subprocess
from pathlib import Path

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY

ROOT = Path(__file__).parents[2]
SYSTEMD = ROOT / "deploy/systemd"
PAGE = (ROOT / "docs/deploy/one-machine.md").read_text(encoding="utf-8")
PROGRAM = "/opt/holdfast/bin/holdfast"
SECRET = "x" * 64


def in_place(text: str, place: Path) -> str:
    """A text with paths below a directory, and without the user `holdfast`."""
    text = re.sub(r"-g holdfast |runuser --user holdfast -- ", "", text)
    return re.sub(r"/(?:etc|var/lib|var/backups)/holdfast", lambda path: f"{place}{path[0]}", text)


def shell(script: str, *arguments: str, **variables: str) -> str:
    command, environment = ["sh", "-euc", script, "sh", *arguments], {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def test_the_program_runs_with_the_settings_that_the_page_writes(tmp_path: Path) -> None:
    [write] = re.findall(r"```\n(install -d [^`]*?events\.env[^`]*?)```", PAGE)
    for directory in ("etc", "var/lib/holdfast"):
        (tmp_path / directory).mkdir(parents=True)
    shell(in_place(write.replace(f"{PROGRAM} secret new", f"echo {SECRET}"), tmp_path))
    script = in_place((SYSTEMD / "holdfast").read_text(encoding="utf-8"), tmp_path).replace(PROGRAM, "sh -c env")

    def settings_of_program(*arguments: str, **variables: str) -> dict[str, str]:
        return dict(re.findall(r"^(\w+)=(.*)$", shell(script, *arguments, **variables), re.MULTILINE))

    settings = settings_of_program()
    assert (tmp_path / "etc/holdfast/events.env").stat().st_mode & 0o777 == 0o640
    assert settings["PWD"] == settings["HOLDFAST_DATA_DIR"] == f"{tmp_path}/var/lib/holdfast"
    assert settings["EVENTS_SECRET_KEY"] == settings["INVENTORY_SECRET_KEY"] == SECRET
    assert settings["MAIL_FROM"] == "Example <tickets@example.com>"
    # What is set in the shell is used instead of the files, also if it is empty.
    of_shell = {"EVENTS_DATABASE_URL": "//a 'b' $c", "INVENTORY_DATABASE_URL": "", "HOLDFAST_DATA_DIR": "/new"}
    assert settings_of_program(**of_shell) == settings | of_shell
    # A service is started with the settings of its unit.
    of_events = {name: value for name, value in settings.items() if not name.startswith("INVENTORY_")}
    assert settings_of_program("events", "serve") == of_events
    known = {kind.variable(field) for kind in (EVENTS.settings, INVENTORY.settings) for field in kind.model_fields}
    assert {*re.findall(r"^([A-Z_]+)=", write, re.MULTILINE)} <= known


def test_the_units_read_the_same_settings_and_the_backup_has_a_name_of_its_time() -> None:
    units = {path.stem: path.read_text(encoding="utf-8") for path in SYSTEMD.glob("*.service")}
    files = {name: re.findall(r"^EnvironmentFile=(.+)$", unit, re.MULTILINE) for name, unit in units.items()}
    assert files["holdfast-backup"] == files["holdfast-inventory"] + files["holdfast-events"]

    [command] = re.findall(r"^ExecStart=/bin/sh -c '(.+)'$", units["holdfast-backup"], re.MULTILINE)
    command = command.replace("$$", "$").replace("%%", "%").replace(PROGRAM, "echo")

    assert re.fullmatch(r"backup /var/backups/holdfast/\d{4}-\d\d-\d\d-\d{6}\.tar\n", shell(command))
