"""What tests of documents read."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

FENCE = re.compile(r"^ *```\w*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
"""A block of code in a document."""


def pages() -> list[Path]:
    """The documents, and the alerts, which say what to do."""
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "deploy" / "prometheus" / "alerts.yml"]


def present(path: Path) -> str:
    """The text of a document; of the changelog only what is not released yet, as earlier commands may be gone."""
    text = path.read_text(encoding="utf-8")
    return text.partition("\n## Unreleased\n")[2].partition("\n## ")[0] if path.name == "CHANGELOG.md" else text
