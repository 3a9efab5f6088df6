"""The page about the architecture names files that there are, and stays short."""

import re

import pytest

from tests.programs.contents import ROOT

PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "packages" / "holdfast-server" / "src" / "holdfast"

MAX_WORDS = 1600


def test_every_file_and_folder_that_the_page_names_is_there() -> None:
    paths = set(re.findall(r"`([a-z][\w/]*(?:\.(?:py|sql)|/))`", PAGE.read_text(encoding="utf-8")))

    assert len(paths) > 50
    assert {path for path in paths if not (SOURCE / path).exists()} == set()


def test_the_architecture_has_at_most_1600_words() -> None:
    assert len(PAGE.read_text(encoding="utf-8").split()) <= MAX_WORDS


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_readme_and_contributing_link_to_the_architecture(name: str) -> None:
    assert "(docs/architecture.md)" in (ROOT / name).read_text(encoding="utf-8")
