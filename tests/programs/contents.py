"""Parts of the documents that are made from the code: the names of the import rules, and the list of decisions
by subjects.

`python -m tests.programs.contents` brings them up to date; a test compares.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREE = ROOT / "docs" / "tree.md"
DECISIONS = ROOT / "docs" / "decisions"

IMPORT_RULES = re.compile(
    r"(?<=<!-- import rules: python -m tests.programs.contents -->\n).*?(?=<!-- end -->)", re.DOTALL
)
"""The generated part of `docs/tree.md`."""

UNUSED_NUMBERS = range(36, 40)
"""Numbers that no decision has ever had."""

SUBJECTS: Mapping[str, Sequence[int]] = {
    "How the code is put together": (1, 21, 22, 75, 104, 78, 47, 102),
    "Many callers at once": (5, 8, 20, 53, 80, 77, 90, 26, 19, 23),
    "PostgreSQL": (24, 103, 52, 54, 55, 56, 57, 60, 76, 82, 99),
    "Background work": (58, 64, 46, 30, 34),
    "HTTP, caches and overload": (7, 25, 33, 72, 79, 81, 83, 101),
    "Limits, and a share for each caller": (6, 91, 95, 98, 93, 68, 108),
    "Agents": (12, 28, 27, 109, 110, 111),
    "Signing in, accounts and access": (9, 14, 35, 40, 48, 66, 67, 65, 62, 41, 92),
    "Pages, forms and texts": (31, 32, 42, 70, 97, 100),
    "Mails and push messages": (29, 63, 69, 112),
    "Registrations, seats and payments": (2, 3, 4, 18, 44, 45, 106, 43, 15),
    "Waiting rooms": (16, 17, 59, 74, 105),
    "The public order, and draws": (84, 86, 87, 88, 89, 94),
    "Stock": (10, 11, 85, 13, 51),
    "The storefront platform": (49, 50, 61, 71, 73, 96, 107),
}
"""The decisions of each subject, in the order in which they are best read."""


def import_rules() -> str:
    """The contracts of import-linter in Markdown, by their names."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return "".join(f"* {contract['name']}.\n" for contract in linter["contracts"])


def tree() -> str:
    """`docs/tree.md` with the import rules of today."""
    return IMPORT_RULES.sub(lambda _: "\n" + import_rules(), TREE.read_text(encoding="utf-8"))


def decisions() -> str:
    """The page that lists all decisions that hold, by their subjects."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(DECISIONS.glob("0*.md"))}
    titles = {
        int(name[:4]): f"* [{text.partition(chr(10))[0].removeprefix('# ')}]({name})"
        for name, text in texts.items()
        if "\nReplaced by" not in text
    }
    unused = f"{UNUSED_NUMBERS[0]} to {UNUSED_NUMBERS[-1]}"
    lines = [
        "# Decisions",
        "",
        "Why things are as they are, one page each. A page changes with the code. Numbers that are not listed were",
        f"replaced by another decision, which their page names; {unused} were never used. Read",
        "[Architecture](../architecture.md) first.",
    ]
    for subject, numbers in SUBJECTS.items():
        lines += ["", f"## {subject}", "", *(titles[number] for number in numbers if number in titles)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TREE.write_text(tree(), encoding="utf-8")
    (DECISIONS / "README.md").write_text(decisions(), encoding="utf-8")
