"""Parts of the documents that are made from the code: the names of the import rules, and the list of decisions.

`python -m tests.contents` brings them up to date; a test compares.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
DECISIONS = ROOT / "docs" / "decisions"

IMPORT_RULES = re.compile(r"(?<=<!-- import rules: python -m tests.contents -->\n).*?(?=<!-- end -->)", re.DOTALL)
"""The generated part of `CONTRIBUTING.md`."""

UNUSED_NUMBERS = range(36, 40)
"""Numbers that no decision has ever had."""


def import_rules() -> str:
    """The contracts of import-linter in Markdown, by their names."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return "".join(f"* {contract['name']}.\n" for contract in linter["contracts"])


def contributing() -> str:
    """`CONTRIBUTING.md` with the import rules of today."""
    return IMPORT_RULES.sub(lambda _: "\n" + import_rules(), CONTRIBUTING.read_text(encoding="utf-8"))


def decisions() -> str:
    """The page that lists all decisions."""
    pages = [path for path in sorted(DECISIONS.glob("*.md")) if path.name != "README.md"]
    titles = [path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in pages]
    unused = f"{UNUSED_NUMBERS[0]} to {UNUSED_NUMBERS[-1]}"
    lines = [
        "# Decisions",
        "Why things are as they are, one page each, in the order of the decisions. A page changes with the code, and",
        f"says so when another decision replaces it. The numbers {unused} were never used.",
        "",
        *(f"* [{title}]({path.name})" for path, title in zip(pages, titles, strict=True)),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    CONTRIBUTING.write_text(contributing(), encoding="utf-8")
    (DECISIONS / "README.md").write_text(decisions(), encoding="utf-8")
