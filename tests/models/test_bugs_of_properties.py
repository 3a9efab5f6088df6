"""Every bug that is planted for a property test is found by it. `make test-long` tries one of each, `make soak` all."""

import re
from pathlib import Path

import pytest

from tests.models.machine import SOAK
from tests.models.planted import BUGS_OF_PROPERTIES, copy_with, files_changed_by, run_check

PROPERTIES = {
    "folded_search": "tests/events/registrations/test_folded_search.py::test_every_way_to_write_a_name_has_one_fold",
    "headers": "tests/kit/mail/test_headers.py::test_a_subject_is_decoded_to_its_text",
    "published_schemas": "tests/test_published_schemas.py",
}
"""The property test that finds the bugs of a folder."""

TRIED = BUGS_OF_PROPERTIES if SOAK else [path for path in BUGS_OF_PROPERTIES if path.name[:2] in {"01", "04", "09"}]


def test_each_property_has_three_bugs() -> None:
    folders = [path.parent.name for path in BUGS_OF_PROPERTIES]

    assert {name: folders.count(name) for name in folders} == dict.fromkeys(PROPERTIES, 3)


@pytest.mark.parametrize("bug", BUGS_OF_PROPERTIES, ids=[path.stem for path in BUGS_OF_PROPERTIES])
def test_a_bug_fits_the_source(bug: Path, tmp_path: Path) -> None:
    assert files_changed_by(bug, tmp_path) != []


@pytest.mark.parametrize("bug", TRIED, ids=[path.stem for path in TRIED])
def test_a_bug_is_found_by_the_property(bug: Path, tmp_path: Path, template_url: str) -> None:
    result = run_check(PROPERTIES[bug.parent.name], copy_with(bug, tmp_path), template_url)

    assert result.returncode == 1, result.stdout + result.stderr
    assert re.search("Failing (test case|explicit example)", result.stdout), result.stdout
