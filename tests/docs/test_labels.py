"""Pages of the consoles have the names of the navigation in documents, and buttons those of pages."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from holdfast.events.console.frame import NAVIGATION as OF_EVENTS
from holdfast.inventory.console.frame import NAVIGATION as OF_INVENTORY
from holdfast.kit.pages.site import NavigationEntry
from tests.docs.reading import FENCE

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "packages"

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "decisions" not in path.parts
)

LABEL = re.compile(r"(?<=[\w,;:(“\"|])(?: |\n)\(?\*\*([A-Z][^*`\[\]]{1,40}[^*.:`\[\]])\*\*")
"""A name in bold letters inside a sentence. At the beginning of one it is the subject of what follows."""

OF_OTHERS = {
    "Online Store → Themes → Customize",
    "Add block → Apps → Live stock",
    "Settings, Checkout, Checkout rules",
    "Live stock",
    "See it live",
    "Sell one 6-pack",
}
"""Labels of the admin of the storefront platform, of our theme block in it, and of the demo shop."""

NO_LABELS = {"What operators must do"}
"""Headings of documents."""


def texts_of_pages() -> set[str]:
    """The English texts of all pages of both services, from the catalogues."""
    catalogues = PACKAGES.glob("*/src/**/translations/de.po")
    lines = "\n".join(path.read_text(encoding="utf-8") for path in catalogues)
    return {re.sub(r'"\n"', "", text) for text in re.findall(r'^msgid "((?:[^"\\]|\\.|"\n")*)"$', lines, re.MULTILINE)}


def labels(text: str) -> Iterator[str]:
    """The names in bold letters that a document has inside sentences."""
    return (" ".join(match[1].split()) for match in LABEL.finditer(FENCE.sub("", text)))


def test_every_label_that_a_document_names_is_on_a_page() -> None:
    existing = texts_of_pages() | OF_OTHERS | NO_LABELS
    labels_of_pages = [(page, label) for page in PAGES for label in labels((ROOT / page).read_text(encoding="utf-8"))]

    assert len(labels_of_pages) > 25
    assert [f"{page}: {label}" for page, label in labels_of_pages if label not in existing] == []


@pytest.mark.parametrize(
    ("page", "navigation"),
    [("docs/events/console.md", OF_EVENTS), ("docs/inventory/console.md", OF_INVENTORY)],
)
def test_the_page_of_a_console_names_every_entry_of_its_navigation(
    page: str, navigation: Mapping[str, NavigationEntry]
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[?([A-Z][\w -]+)", text, re.MULTILINE)
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    names = {part.strip() for name in [*rows, *sections] for part in re.split(r", | and ", name)}

    assert {entry.name.lower() for entry in navigation.values()} - {name.lower() for name in names} == set()


def test_a_label_is_found_inside_a_sentence_only() -> None:
    assert [*labels("* **Leaders.** In the console, under **Nowhere**, press\n**Save**.\n")] == ["Nowhere", "Save"]
