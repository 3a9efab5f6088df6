"""Documents have one space between sentences, one empty line between blocks, and lists that are lists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").glob("*.md")]
)

FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def faults(text: str) -> Iterator[str]:
    """What a linter of Markdown would refuse, outside of examples."""
    prose = FENCE.sub(lambda match: "x" + "\nx" * match[0].count("\n"), text)
    lines = prose.split("\n")
    for number, line in enumerate(lines, start=1):
        before = lines[number - 2] if number > 1 else ""
        if line != line.rstrip():
            yield f"{number}: a space at the end"
        if re.search(r"\S {2,}\S", re.sub(r"`[^`]*`", "x", line)) and not line.startswith("|"):
            yield f"{number}: two spaces"
        if line.startswith("|") and not re.search(r"[ :|-]\|$", line):
            yield f"{number}: no space before the end of a row"
        if line.startswith("#") and before and not before.startswith("#"):
            yield f"{number}: no empty line before a heading"
        if line.startswith("| ") and before and not before.startswith(("|", "#", "<!--")):
            yield f"{number}: no empty line before a table"
        if re.match(r"(?:1\.|\*) ", line) and before and not re.match(r"[ x]|(?:\d+\.|\*) |#|<!--", before):
            yield f"{number}: no empty line before a list"
        if not line and not before and number not in (1, len(lines)):
            yield f"{number}: two empty lines"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield "the end is not one line break"


@pytest.mark.parametrize("page", PAGES)
def test_a_document_is_tidy_markdown(page: str) -> None:
    assert [*faults((ROOT / page).read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("One.  Two.\n", "1: two spaces"),
        ("One. \n", "1: a space at the end"),
        ("One\n\n\nTwo\n", "3: two empty lines"),
        ("One:\n1. Two\n", "2: no empty line before a list"),
        ("One\n## Two\n", "2: no empty line before a heading"),
        ("One\n| a | b |\n", "2: no empty line before a table"),
        ("| a | b|\n", "1: no space before the end of a row"),
    ],
)
def test_untidy_markdown_is_found(text: str, fault: str) -> None:
    assert fault in [*faults(text)]
