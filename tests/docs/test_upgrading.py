"""The page on upgrading from before version 0.3.0, when `/opt/holdfast` was a directory: its commands, in order."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from holdfast import __version__

ROOT = Path(__file__).parents[2]
INSTALLING = (ROOT / "docs/deploy.md").read_text(encoding="utf-8").partition("\n## Installing\n")[2].split("\n## ")[0]
PAGE = (ROOT / "docs/deploy/upgrading.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## From before version 0.3.0\n")[2].split("\n## ")[0]

VERSION = "0.3.0"

PROGRAM = """#!/bin/sh
echo "{version} $*" >> {log}
"""

STUBS = {
    # Makes an environment in which pip installs nothing, and the program says its version.
    "python3": 'mkdir -p "$3/bin"; cp {place}/pip "$3/bin/pip"; cp {place}/new "$3/bin/holdfast"',
    "pip": "true",
    "make": "true",
    # Starts what the units name, as systemd does.
    "systemctl": """
        case "$1" in restart)
            shift
            for unit in "$@"; do
                $(sed -n 's/^ExecStart=//p' {place}/etc/systemd/system/$unit.service)
            done
        esac""",
}


def blocks(text: str) -> list[str]:
    """The commands of a page, also of its lists."""
    return [dedent(block) for block in re.findall(r"^ *```\n(.+?)^ *```$", text, re.MULTILINE | re.DOTALL)]


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], None]:
    """Runs commands of a page in a place where version 0.2.0 is installed as its pages said."""
    log = tmp_path / "log"
    log.touch()
    for name, lines in STUBS.items():
        stub = tmp_path / "stubs" / name if name != "pip" else tmp_path / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f"#!/bin/sh\n{lines.format(place=tmp_path)}\n")
        stub.chmod(0o755)
    (tmp_path / "new").write_text(PROGRAM.format(version=VERSION, log=log))
    old = tmp_path / "opt/holdfast/bin/holdfast"
    old.parent.mkdir(parents=True)
    old.write_text(PROGRAM.format(version="0.2.0", log=log))
    for program in (tmp_path / "new", old):
        program.chmod(0o755)
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    for unit in (ROOT / "deploy/systemd").glob("*.service"):
        text = unit.read_text(encoding="utf-8").replace("/opt/holdfast/", f"{tmp_path}/opt/holdfast/")
        (units / unit.name).write_text(text)
        # A second process on the same machine.
        (units / f"{unit.stem}-2.service").write_text(text.replace("800", "801"))
    (tmp_path / "etc/holdfast").mkdir()
    for service in ("events", "inventory"):
        (tmp_path / f"etc/holdfast/{service}.env").write_text("A_SETTING=1\n")

    def run(commands: str) -> None:
        script = re.sub(r"/(?:opt|etc)/", lambda path: f"{tmp_path}{path[0]}", commands)
        script = f"PATH={tmp_path}/stubs:$PATH; VERSION={VERSION}\n" + re.sub("^VERSION=.+\n", "", script)
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True, cwd=tmp_path)

    return run


def test_the_page_on_installing_shows_the_present_version() -> None:
    [example] = re.findall("^VERSION=(.+)$", INSTALLING, re.MULTILINE)

    assert example == __version__.partition(".dev")[0], "an older one was not installed where the link leads"


def test_the_commands_of_both_pages_lead_from_a_directory_to_a_link_without_a_stop(
    run: Callable[[str], None], tmp_path: Path
) -> None:
    link, units = tmp_path / "opt/holdfast", tmp_path / "etc/systemd/system"
    before = {unit.name: unit.read_text() for unit in units.iterdir()}
    log = tmp_path / "log"
    _, install, to_link, *_ = blocks(INSTALLING)
    migrate, start_new, change = blocks(SECTION)

    run(install)
    with pytest.raises(subprocess.CalledProcessError):
        run(to_link)  # which the page tells to leave out here
    run(migrate)
    run(start_new)
    assert log.read_text().splitlines() == [
        f"{VERSION} --version",
        f"{VERSION} events migrate --dry-run",
        f"{VERSION} inventory migrate --dry-run",
        f"{VERSION} events migrate",
        f"{VERSION} inventory migrate",
    ]

    log.write_text("")
    for process in ("holdfast-events", "holdfast-inventory", "holdfast-events-2", "holdfast-inventory-2"):
        assert (link / "bin/holdfast").read_text().count("0.2.0"), "the old version is there while it runs"
        run(f"systemctl restart {process}")
    assert [line.split()[:3] for line in log.read_text().splitlines()] == [
        [VERSION, service, "serve"] for service in ("events", "inventory") * 2
    ]

    run(change)
    assert link.readlink() == tmp_path / f"opt/holdfast-{VERSION}"
    assert {unit.name: unit.read_text() for unit in units.iterdir()} == before


def test_an_upgrade_where_the_link_exists_goes_on_with_the_next_command(
    run: Callable[[str], None], tmp_path: Path
) -> None:
    link = tmp_path / "opt/holdfast"
    shutil.move(link, tmp_path / "opt/holdfast-0.2.9")
    link.symlink_to(tmp_path / "opt/holdfast-0.2.9")
    _, install, to_link, *_ = blocks(INSTALLING)

    run(install)
    run(to_link)

    assert link.readlink() == tmp_path / f"opt/holdfast-{VERSION}"


def test_the_first_line_of_an_upgrade_says_whether_it_needs_a_stop() -> None:
    assert PAGE.startswith("# Upgrading\n\nNo upgrade from a release needs a stop, if you have two processes")
