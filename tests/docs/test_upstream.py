"""Each program of docs/upstream.md still shows its fault with the installed library."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = DOCS / "upstream"
PAGE = (DOCS / "upstream.md").read_text(encoding="utf-8")
SECTIONS = re.findall(
    r"^## (.*?)$.*?^\[The program\]\(upstream/(\w+\.py)\) prints:\n\n```text\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL
)
COMPAT = Path(__file__).parents[2] / "packages/holdfast-server/src/holdfast/kit/compat"


def test_every_fault_on_the_page_has_a_program_and_its_output() -> None:
    assert [title for title, _, _ in SECTIONS] == re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert SECTIONS


@pytest.mark.parametrize(("title", "program", "output"), SECTIONS, ids=[title for title, _, _ in SECTIONS])
def test_every_documented_fault_of_a_library_still_exists(
    title: str, program: str, output: str, database_url: str
) -> None:
    if title.startswith("Python 3.11") and sys.version_info >= (3, 12):
        pytest.skip("this version of Python has no such fault")
    done = subprocess.run(
        [sys.executable, PROGRAMS / program],
        env={**os.environ, "DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.rstrip().endswith(output.rstrip()), done.stdout + done.stderr


def test_every_section_and_every_program_is_run() -> None:
    assert [title for title, _, _ in SECTIONS] == re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert sorted(program for _, program, _ in SECTIONS) == sorted(path.name for path in PROGRAMS.iterdir())


def test_every_module_that_works_around_a_library_is_on_the_page_and_links_to_it() -> None:
    modules = {path.name for path in COMPAT.glob("*.py")} - {"__init__.py"}

    assert set(re.findall(r"kit/compat/(\w+\.py)", PAGE)) == modules
    assert all("docs/upstream.md" in (COMPAT / module).read_text(encoding="utf-8") for module in modules)
