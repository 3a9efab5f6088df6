"""Links of the documents lead somewhere: to a file that there is, and to a heading that it has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / folder / "README.md" for folder in ("tests", "deploy", "extensions")),
    ]
    if path.is_file()
)

NAME_OF_FILE = re.compile(r"`@?(\w+)`\s+(?:of|in)\s+(?:the\s+service's\s+)?`([\w/]+\.py)`")
"""A name and the module that defines it, as documents write them: `PAGES` of `tests/docs/test_links.py`."""

BOUNDS = ROOT / "tests" / "programs" / "bounds.py"
"""This file has the text of a page in `docs/`, with links."""


def prose(path: Path) -> str:
    """The text of a page without its examples: what is in brackets there may be anything."""
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """What the headings of a page are called in addresses."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_what_there_is(page: str) -> None:
    lost: list[str] = []
    for link in re.findall(r"\]\(([^()\s]+)\)", prose(ROOT / page)):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent / file if file else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_every_page_that_the_code_names_is_there() -> None:
    named = {
        name
        for path in (ROOT / "packages").rglob("*.py")
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
    }

    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_map_of_helpers_names_what_its_modules_define_and_every_module_of_helpers() -> None:
    tests = ROOT / "tests"
    rows = re.findall(
        r"((?:`\w+`, )*`\w+`) of \[([\w/]+\.py)\]\(\2\)", (tests / "README.md").read_text(encoding="utf-8")
    )
    helpers = {path.relative_to(tests).as_posix() for path in (tests / "helpers").glob("*.py")} - {
        "helpers/__init__.py"
    }

    assert len(rows) > 20
    assert [
        (name, module)
        for names, module in rows
        for name in re.findall(r"\w+", names)
        if not re.search(
            rf"^(?:class |(?:async )?def )?{name}\b", (tests / module).read_text(encoding="utf-8"), re.MULTILINE
        )
    ] == []
    assert helpers - {module for _, module in rows} == set()


def test_the_map_of_helpers_names_every_plugin_of_pytest() -> None:
    plugins = re.findall(r"\"tests\.(\w+)\"", (ROOT / "tests/conftest.py").read_text(encoding="utf-8"))
    text = (ROOT / "tests/README.md").read_text(encoding="utf-8")

    assert plugins
    assert [name for name in plugins if f"| [{name}.py]({name}.py) |" not in text] == []


def test_every_decision_that_a_page_names_by_its_number_is_that_one() -> None:
    numbers = {int(path.name[:4]) for path in (ROOT / "docs/decisions").glob("[0-9]*.md")}
    wrong: list[str] = []
    for page in PAGES:
        text = prose(ROOT / page)
        for number, target in re.findall(r"\[(?:decision )?(\d+)\]\((?:[\w./]*/)?(\d{4})-", text):
            if int(number) != int(target):
                wrong.append(f"{page}: [{number}] leads to {target}")
        if page.startswith("docs/decisions"):
            named = re.findall(r"\((?:see )?(\d{1,2}|0\d{3})(?: and (\d{1,2}))?\)(?! *=)", text)
            wrong += [f"{page}: {number}" for pair in named for number in pair if number and int(number) not in numbers]
    assert numbers
    assert wrong == []


def test_every_module_that_code_or_documents_name_is_there() -> None:
    paths = [path for top in ("packages", "tests", "benchmarks", "deploy") for path in (ROOT / top).rglob("*.py")]
    names = {path.name for path in paths}
    texts = [
        *(ROOT / page for page in ("CONTRIBUTING.md", "docs/tree.md", "docs/adding.md")),
        *(
            path
            for top, kinds in (("packages", {".py", ".html", ".js"}), ("docs/decisions", {".md"}))
            for path in (ROOT / top).rglob("*")
            if path.suffix in kinds
        ),
    ]
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in texts
        for name in re.findall(r"`([\w/-]+\.py)`", path.read_text(encoding="utf-8"))
    }

    assert len(named) > 50
    assert [
        (path, name)
        for path, name in sorted(named)
        if name.rpartition("/")[2] not in names
        or ("/" in name and not any(known.as_posix().endswith(f"/{name}") for known in paths))
    ] == []


def definitions(file: str) -> str:
    """The text of all modules whose paths end like this."""
    name = file.rpartition("/")[2]
    paths = [path for top in ("packages", "tests", "benchmarks") for path in (ROOT / top).rglob(name)]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path.as_posix().endswith(f"/{file}"))


def test_every_name_that_a_document_gives_to_a_module_is_defined_there() -> None:
    named = [
        (page, name, file)
        for page in PAGES
        for name, file in NAME_OF_FILE.findall((ROOT / page).read_text(encoding="utf-8"))
    ]

    assert len(named) > 10
    assert [
        f"{page}: {name} of {file}"
        for page, name, file in named
        if not re.search(rf"^ *(?:(?:async )?def |class )?{name}\b(?:[(\[:]|.* = )", definitions(file), re.MULTILINE)
    ] == []


def test_code_names_a_decision_by_its_number_in_one_form() -> None:
    numbers = {int(path.name[:4]) for path in (ROOT / "docs/decisions").glob("[0-9]*.md")}
    wrong: list[str] = []
    named: set[int] = set()
    for top in ("packages", "tests", "benchmarks", "extensions"):
        for path in (ROOT / top).rglob("*"):
            # A migration that was released is never changed, not even its comments.
            if path.suffix not in {".py", ".sql", ".html", ".js"} or "migrations" in path.parts or path == BOUNDS:
                continue
            text = path.read_text(encoding="utf-8")
            cited = {int(number) for number in re.findall(r"\b[Dd]ecision (\d+)\b", text)}
            named |= cited
            wrong += [f"{path.relative_to(ROOT)}: decision {number} does not exist" for number in cited - numbers]
            wrong += [
                f"{path.relative_to(ROOT)}: {name}; write `decision {int(name[-4:])}`"
                for name in re.findall(r"decisions/0\d{3}", text)
            ]

    assert len(named) > 10
    assert wrong == []


def test_the_index_of_documents_links_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^()#\s]+)(?:#[^()\s]*)?\)", index)}
    pages = {path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts}

    assert pages - linked == {ROOT / "docs" / "README.md"}


@pytest.mark.parametrize("folder", ["deploy", "extensions"])
def test_the_readme_of_a_folder_names_every_folder_in_it(folder: str) -> None:
    text = (ROOT / folder / "README.md").read_text(encoding="utf-8")

    assert {path.name for path in (ROOT / folder).iterdir() if path.is_dir() and f"`{path.name}/`" not in text} == set()
