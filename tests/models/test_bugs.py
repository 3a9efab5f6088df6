"""Every planted bug is found by its check. `make test-long` tries some of them, `make soak` all.

A bug is a patch in the folder of the check that must fail, below a sentence that says what is wrong: in `bugs/` for
histories and machines, in `bugs_of_properties/` for the tests of `PROPERTIES`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.machine import SOAK

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = Path("packages", "holdfast-server", "src")
BUGS = sorted(HERE.glob("bugs/**/*.patch"))
BUGS_OF_PROPERTIES = sorted(HERE.glob("bugs_of_properties/**/*.patch"))
CHECKS = sorted({path.parent.name for path in BUGS})
PROPERTIES = {
    "folded_search": "tests/events/registrations/test_folded_search.py::test_a_name_has_one_fold_however_it_is_written",
    "headers": "tests/kit/mail/test_headers.py::test_a_subject_is_decoded_to_its_text",
    "published_schemas": "tests/test_published_schemas.py",
}
"""The property test that finds the bugs of a folder."""


def copy_with(bug: Path | None, directory: Path) -> Path:
    """A copy of the source with a bug, or without one."""
    # With what is compiled already: Python compiles only what a patch has changed. What is being
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


def bugs(paths: list[Path], *tried: str) -> pytest.MarkDecorator:
    """Each of them; without `make soak`, those that are tried if some are named."""
    chosen = [path for path in paths if SOAK or not tried or path.name[:2] in tried]
    return pytest.mark.parametrize("bug", chosen, ids=[path.stem for path in chosen])


def test_no_planted_bug_is_left_out() -> None:
    # Bugs are found by their folders. One whose folder has another name would never be tried.
    for_histories = [path for path in BUGS if path.parent.name.startswith("history")]
    folders = [path.parent.name for path in BUGS_OF_PROPERTIES]

    assert (len(for_histories), len(BUGS)) == (18, 32)
    assert {name: folders.count(name) for name in folders} == dict.fromkeys(PROPERTIES, 3)


@bugs(BUGS + BUGS_OF_PROPERTIES)
def test_a_planted_bug_changes_a_file_of_the_source(bug: Path, tmp_path: Path) -> None:
    assert files_changed_by(bug, tmp_path) != []


@bugs(BUGS, "06", "17", "24")
def test_a_planted_bug_is_found_by_its_check(bug: Path, tmp_path: Path, template_url: str) -> None:
    result = run_check(f"tests/models/test_{bug.parent.name}.py", copy_with(bug, tmp_path), template_url)

    assert result.returncode == 1, result.stdout + result.stderr
    assert re.search("The (model|history) disagrees", result.stdout), result.stdout


# What a machine finds in the source itself, it would find in a copy: a short check shows that a copy passes.
@pytest.mark.parametrize(
    "check", [f"tests/models/test_{name}.py" for name in CHECKS] if SOAK else [PROPERTIES["headers"]]
)
def test_a_copy_without_a_planted_bug_passes_its_check(check: str, tmp_path: Path, template_url: str) -> None:
    result = run_check(check, copy_with(None, tmp_path), template_url)

    assert result.returncode == 0, result.stdout + result.stderr


@bugs(BUGS_OF_PROPERTIES, "01", "04", "09")
def test_a_planted_bug_is_found_by_its_property(bug: Path, tmp_path: Path, template_url: str) -> None:
    result = run_check(PROPERTIES[bug.parent.name], copy_with(bug, tmp_path), template_url)

    assert result.returncode == 1, result.stdout + result.stderr
    assert re.search("Failing (test case|explicit example)", result.stdout), result.stdout
