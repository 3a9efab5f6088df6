"""Every planted bug is found by its check. `make test` tries some of them, `make soak` all."""

import re
from pathlib import Path

import pytest

from tests.models.machine import SOAK
from tests.models.planted import BUGS, copy_with, run_check

CHECKS = sorted({each.parent.name for each in BUGS})
TRIED = BUGS if SOAK else [each for each in BUGS if each.name[:2] in {"03", "06", "08", "14", "17"}]


def named(bugs: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bug", bugs, ids=[each.stem for each in bugs])


def test_there_are_ten_bugs_for_the_machines_and_ten_for_the_histories() -> None:
    for_histories = [each for each in BUGS if each.parent.name.startswith("history")]

    assert (len(for_histories), len(BUGS)) == (10, 20)


@named(BUGS)
def test_a_bug_fits_the_source(bug: Path, tmp_path: Path) -> None:
    fixed = copy_with(None, tmp_path / "fixed")
    broken = copy_with(bug, tmp_path / "broken")

    assert [each for each in fixed.rglob("*.py") if each.read_bytes() != _same(each, fixed, broken)] != []


def _same(file: Path, of: Path, among: Path) -> bytes:
    return (among / file.relative_to(of)).read_bytes()


@named(TRIED)
def test_a_bug_is_found_by_its_check(bug: Path, tmp_path: Path, template_url: str) -> None:
    found = run_check(f"test_{bug.parent.name}.py", copy_with(bug, tmp_path), template_url)

    assert found.returncode == 1, found.stdout + found.stderr
    assert re.search("The (model|history) disagrees", found.stdout), found.stdout


@pytest.mark.parametrize("check", CHECKS if SOAK else CHECKS[-1:])
def test_a_copy_without_a_bug_passes(check: str, tmp_path: Path, template_url: str) -> None:
    found = run_check(f"test_{check}.py", copy_with(None, tmp_path), template_url)

    assert found.returncode == 0, found.stdout + found.stderr
