"""Releases are found in the history, and the version of the program goes on from the last one."""

import re
import subprocess
import sys
from pathlib import Path

from holdfast import __version__
from tests.programs.releases import CHECKOUT, releases, subject_of


def clone(directory: Path, *options: str | Path) -> Path:
    """A clone without tags, with the files that find releases."""
    command = ["git", "clone", "--quiet", "--no-tags", "--no-checkout", *options, directory]
    subprocess.run(command, check=True, capture_output=True)
    files = ["CHANGELOG.md", "tests/__init__.py", "tests/programs/__init__.py", "tests/programs/releases.py"]
    subprocess.run(["git", "-C", directory, "checkout", "--quiet", "HEAD", *files], check=True, capture_output=True)
    return directory


def run_tagging(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.programs.releases"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_a_clone_without_tags_gets_those_of_all_releases(tmp_path: Path) -> None:
    code = clone(tmp_path / "clone", "--shared", CHECKOUT)

    assert run_tagging(code).returncode == run_tagging(code).returncode == 0
    for release in releases():
        command = ["git", "-C", code, "log", "-1", "--format=%s", f"v{release}"]
        subject = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        assert subject == subject_of(release)


def test_a_clone_without_history_names_the_command_to_fetch_it(tmp_path: Path) -> None:
    refusal = run_tagging(clone(tmp_path / "clone", "--depth=1", CHECKOUT.as_uri()))

    assert refusal.returncode == 1
    assert refusal.stderr.startswith("This clone has neither the tag v0.1.0 nor a commit with the subject ")
    assert refusal.stderr.endswith("git fetch --tags --unshallow\n")


def test_the_newest_section_of_the_changelog_is_that_of_the_version() -> None:
    changes = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## (\S+)", changes, re.MULTILINE)[0]

    assert newest == ("Unreleased" if ".dev" in __version__ else __version__)
    version = [int(part) for part in __version__.split(".")[:3]]
    earlier = [release for release in releases() if release != __version__]
    assert version > [int(part) for part in earlier[-1].split(".")]
