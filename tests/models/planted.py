"""Bugs that are planted in a copy of the source, to see that a check finds them.

Each is a patch in `bugs/`, in the folder of the check that must fail, below a sentence that says what is wrong.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = Path("packages", "holdfast-server", "src")
BUGS = sorted(HERE.glob("bugs/**/*.patch"))
BUGS_OF_PROPERTIES = sorted(HERE.glob("bugs_of_properties/**/*.patch"))


def copy_with(bug: Path | None, directory: Path) -> Path:
    """A copy of the source with a bug, or without one."""
    # With what is compiled already: Python compiles anew what a patch has changed, and nothing else. What is being
    # compiled just now has another name, which does not stay.
    shutil.copytree(ROOT / SOURCE, directory / SOURCE, ignore=shutil.ignore_patterns("*.pyc.*"))
    if bug:
        _apply(bug, directory)
    return directory / SOURCE


def files_changed_by(bug: Path, directory: Path) -> list[str]:
    """The files that a bug changes, by their paths in the checkout. Fails if it does not fit them.

    directory    an empty one, for copies of these files
    """
    paths = re.findall(r"^\+\+\+ b/(.+)$", bug.read_text(encoding="utf-8"), re.MULTILINE)
    for path in paths:
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, directory / path)
    _apply(bug, directory)
    return [path for path in paths if (directory / path).read_bytes() != (ROOT / path).read_bytes()]


def _apply(bug: Path, directory: Path) -> None:
    subprocess.run(["git", "apply", str(bug)], cwd=directory, check=True, timeout=60)


def run_check(check: str, source: Path, database_url: str) -> subprocess.CompletedProcess[str]:
    """Run a test, named by its path, on a copy of the source, with the database server of this run."""
    environment = {**os.environ, "PYTHONPATH": f"{source}:{ROOT}", "HOLDFAST_TEST_DATABASE_URL": database_url}
    environment.pop("HOLDFAST_SOAK", None)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", check]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
