"""The texts of pages and mails, and their translations.

`python -m tests.programs.translations` brings the catalogues up to date. New texts are added without a translation, and
texts that are used no more are removed; a test fails for both.
"""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

PACKAGES = Path(__file__).parents[2] / "packages"
SOURCE = PACKAGES / "holdfast-server" / "src" / "holdfast"
CODE = "de"
FOLDERS = [
    SOURCE / "kit",
    SOURCE / "accounts",
    SOURCE / "events",
    *sorted(folder for service in ("accounts", "events", "inventory") for folder in (SOURCE / service).glob("[a-z]*/")),
    *(PACKAGES / "holdfast-demo" / "src" / "holdfast_demo" / part for part in ("shopify", "stripe", "mails")),
]
"""Each has a catalogue of its own: the kit, each noun, what lies beside the nouns of a package, and each part of the
demo that has pages."""

METHODS = [("**.py", "python"), ("**.html", "jinja2"), ("**.txt", "jinja2")]
OPTIONS = {"**.html": {"trimmed": "true", "newstyle_gettext": "true"}, "**.txt": {"newstyle_gettext": "true"}}
KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "translatable": None, "message": None}


def catalog_of_code(folder: Path) -> Catalog:
    """The texts in the code and the templates of a folder."""
    catalog = Catalog()
    texts = extract_from_dir(folder, METHODS, OPTIONS, KEYWORDS, strip_comment_tags=True, directory_filter=_is_inside)
    for _, _, message, _, context in sorted(texts, key=lambda entry: (entry[0], entry[1])):
        catalog.add(message, context=context)
    return catalog


def _is_inside(folder: str | PathLike[str]) -> bool:
    """Whether the texts of a folder are in the catalogue of the folder around it. A noun has one of its own."""
    return Path(folder).parent not in {SOURCE / "accounts", SOURCE / "events"}


def file_of(folder: Path) -> Path:
    return folder / "translations" / f"{CODE}.po"


def stored_catalog(folder: Path) -> Catalog:
    """The catalogue of a folder; an empty one if there is none."""
    if not file_of(folder).exists():
        return Catalog(CODE)
    with file_of(folder).open("rb") as file:
        return read_po(file, CODE)


def texts(catalog: Catalog) -> Iterator[str | tuple[str, ...]]:
    return (tuple(entry.id) if isinstance(entry.id, list | tuple) else entry.id for entry in catalog if entry.id)


def is_translated(entry: Message) -> bool:
    """Whether an entry has a translation; of a text with a plural, whether all of its forms have one."""
    return all(entry.string) if isinstance(entry.string, list | tuple) else bool(entry.string)


def update() -> None:
    """Bring all catalogues up to date. A text that has moved to another folder takes its translation along."""
    known = {
        (entry.id, entry.context): entry.string
        for folder in FOLDERS
        for entry in stored_catalog(folder)
        if is_translated(entry)
    }
    for folder in FOLDERS:
        new, old = catalog_of_code(folder), stored_catalog(folder)
        if not [*texts(new)]:
            continue
        old.update(new, no_fuzzy_matching=True)
        old.obsolete.clear()
        for entry in old:
            if not is_translated(entry):
                entry.string = known.get((entry.id, entry.context), "")
        file_of(folder).parent.mkdir(exist_ok=True)
        with file_of(folder).open("wb") as file:
            write_po(file, old, no_location=True, omit_header=True, sort_output=True, width=118)
        missing = [entry.id for entry in old if entry.id and not is_translated(entry)]
        print(f"{file_of(folder).relative_to(PACKAGES)}: {len(old)} texts, {len(missing)} without a translation")


if __name__ == "__main__":
    update()
