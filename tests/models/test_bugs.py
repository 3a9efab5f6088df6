"""Every planted bug is found by its check. `make test-long` tries some of them, `make soak` all."""

import re
from pathlib import Path

import pytest

from tests.models.machine import SOAK
from tests.models.planted import BUGS, copy_with, files_changed_by, run_check

CHECKS = sorted({path.parent.name for path in BUGS})
TRIED = BUGS if SOAK else [path for path in BUGS if path.name[:2] in {"06", "17", "24"}]


def named(bugs: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bug", bugs, ids=[path.stem for path in bugs])


def test_there_are_fourteen_bugs_for_the_histories_and_fourteen_for_the_machines() -> None:
    for_histories = [path for path in BUGS if path.parent.name.startswith("history")]

    assert (len(for_histories), len(BUGS)) == (14, 28)


@named(BUGS)
def test_a_bug_fits_the_source(bug: Path, tmp_path: Path) -> None:
    assert files_changed_by(bug, tmp_path) != []


@named(TRIED)
def test_a_bug_is_found_by_its_check(bug: Path, tmp_path: Path, template_url: str) -> None:
    result = run_check(f"tests/models/test_{bug.parent.name}.py", copy_with(bug, tmp_path), template_url)

    assert result.returncode == 1, result.stdout + result.stderr
    assert re.search("The (model|history) disagrees", result.stdout), result.stdout


@pytest.mark.parametrize("check", CHECKS if SOAK else CHECKS[-1:])
def test_a_copy_without_a_bug_passes(check: str, tmp_path: Path, template_url: str) -> None:
    result = run_check(f"tests/models/test_{check}.py", copy_with(None, tmp_path), template_url)

    assert result.returncode == 0, result.stdout + result.stderr
