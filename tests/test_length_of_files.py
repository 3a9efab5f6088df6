"""A file is one idea, of at most 500 lines (decision 104)."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_LINES = 500
SUFFIXES = (".py", ".html", ".css", ".js")


@pytest.mark.parametrize("directory", ["packages", "tests", "benchmarks"])
def test_a_file_has_at_most_500_lines(directory: str) -> None:
    files = [path for path in (ROOT / directory).rglob("*") if path.suffix in SUFFIXES]

    assert files
    assert [path.name for path in files if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES] == []
