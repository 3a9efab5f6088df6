"""A file is one idea, of at most 500 lines (decision 104)."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_LINES = 500


@pytest.mark.parametrize("directory", ["packages", "tests", "benchmarks"])
def test_a_module_has_at_most_500_lines(directory: str) -> None:
    modules: list[Path] = [*(ROOT / directory).rglob("*.py")]

    assert modules
    assert [path.name for path in modules if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES] == []
