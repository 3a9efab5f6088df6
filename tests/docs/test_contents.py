"""Lists in documents are complete: import rules, decisions, and the tree of folders. An example has what it names."""

import re
import tomllib

import pytest

from tests.programs import contents
from tests.programs.contents import DECISIONS, ROOT, SUBJECTS, TREE, UNUSED_NUMBERS, decisions

SOURCE = ROOT / "packages" / "holdfast-server" / "src" / "holdfast"
GLOSSARY = ROOT / "docs" / "glossary.md"


def tree() -> str:
    """The tree of `docs/tree.md`."""
    [block] = re.findall(r"^```\n(.*?)^```", TREE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return block


def tree_of(part: str) -> str:
    """The lines of the tree about a part of the server, or about what both services have."""
    blocks = re.split(r"\n(?=  \S)", tree())
    return "\n".join(block for block in blocks if re.match(rf"  (?:\w+/ +)*{part}/\s", block))


def test_the_import_rules_are_those_of_the_linter() -> None:
    assert TREE.read_text(encoding="utf-8") == contents.tree(), "python -m tests.programs.contents"


def test_every_decision_that_holds_is_listed() -> None:
    assert (DECISIONS / "README.md").read_text(encoding="utf-8") == decisions(), "python -m tests.programs.contents"


def test_the_file_name_of_every_decision_is_its_title() -> None:
    titles = {path.stem: path.read_text(encoding="utf-8").partition("\n")[0] for path in DECISIONS.glob("0*.md")}
    names = {
        stem: re.sub(r"[^a-z0-9]+", "-", re.sub(r"['`]", "", title.partition(". ")[2].lower())).strip("-")
        for stem, title in titles.items()
    }

    assert names == {stem: stem[len("0001-") :] for stem in titles}


def test_every_number_of_a_decision_is_taken_once_but_for_the_unused_ones() -> None:
    numbers = [int(path.name[:4]) for path in sorted(DECISIONS.glob("0*.md"))]

    assert numbers == [number for number in range(1, numbers[-1] + 1) if number not in UNUSED_NUMBERS]


def test_every_decision_has_one_subject() -> None:
    numbers = [int(path.name[:4]) for path in sorted(DECISIONS.glob("0*.md"))]

    assert sorted(number for subject in SUBJECTS.values() for number in subject) == numbers, (
        "SUBJECTS in tests/programs/contents.py"
    )


def test_a_decision_that_another_replaces_is_one_line() -> None:
    replaced = [path for path in DECISIONS.glob("0*.md") if "\nReplaced by" in path.read_text(encoding="utf-8")]

    assert replaced
    assert [path.name for path in replaced if len(path.read_text(encoding="utf-8").splitlines()) > 3] == []


@pytest.mark.parametrize("part", ["kit", "accounts", "inventory", "events"])
def test_the_tree_says_what_each_folder_has(part: str) -> None:
    folders = {path.parent.name for path in (SOURCE / part).glob("*/__init__.py")}

    assert {name for name in folders if not re.search(rf"^    {name}/ +\w", tree_of(part), re.MULTILINE)} == set()


def test_the_tree_has_the_parts_of_the_server() -> None:
    assert [path.parent.name for path in SOURCE.glob("*/__init__.py") if not tree_of(path.parent.name)] == []


def test_the_example_of_an_operation_names_what_its_files_have() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example = page.partition("\n### An example\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \d \| `([^`]+)` \| (.+) \|$", example, re.MULTILINE)

    assert len(rows) > 5
    for file, names in rows:
        [path] = [path for path in (SOURCE / file, ROOT / file) if path.exists()]
        assert [name for name in re.findall(r"`([^`]+)`", names) if name not in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("part", ["accounts", "inventory", "events", "."])
def test_the_tree_has_every_module_beside_these_folders(part: str) -> None:
    modules = {path.name for path in (SOURCE / part).glob("*.py") if not path.name.startswith("__")}

    assert len(modules) > 1
    assert modules - set(re.findall(r"\w+\.py", tree())) == set()


def test_the_tree_names_nothing_that_is_not_there() -> None:
    names = set(re.findall(r"(?<![\w/-])(\w+\.py|\w+/)", tree()))
    existing = {f"{path.name}/" if path.is_dir() else path.name for path in ROOT.glob("*")} | {
        f"{path.name}/" if path.is_dir() else path.name
        for top in ("packages", "tests")
        for path in (ROOT / top).rglob("*")
    }

    assert names - existing == set()


@pytest.mark.parametrize("service", ["inventory", "events"])
def test_the_tree_names_files_that_the_service_has(service: str) -> None:
    of_both = tree().partition("In each: ")[2].partition(", and\n")[0]
    files = re.findall(r"`(\w+\.py)`", of_both)

    assert len(files) > 5
    assert {
        name
        for name in files
        if not (SOURCE / service / name).exists() and not (SOURCE / service / name.removesuffix(".py")).is_dir()
    } == set()
    assert [
        name for name in re.findall(rf"\(in {service}: `(\w+)/`\)", of_both) if not (SOURCE / service / name).is_dir()
    ] == []


def test_the_tree_has_the_folders_of_the_kit_in_the_order_of_their_imports() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [layers] = [contract["layers"] for contract in contracts if contract["name"].startswith("Inside the kit")]
    kit = tree().partition("\n  kit/")[2].partition("\n  accounts/")[0]

    assert re.findall(r"^    (\w+)/", kit, re.MULTILINE) == [layer.removeprefix("holdfast.kit.") for layer in layers]


def glossary() -> list[str]:
    """The words that the glossary explains."""
    return re.findall(r"^\* \*\*([^*]+)\*\*: \S", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_glossary_explains_each_word_once_and_one_word_in_a_row() -> None:
    words = glossary()

    assert len(words) == len(re.findall(r"^\* ", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE))
    assert 40 < len(words) <= 70
    assert sorted(words) == sorted({*words})
    assert [word for word in words if not re.fullmatch(r"[a-z]+(?: [a-z]+)?", word)] == []


def test_the_code_uses_every_word_of_the_glossary() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for top in ("packages", "tests")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".py", ".sql"}
    ).lower()

    assert [word for word in glossary() if not re.search(rf"(?<![a-z]){word.replace(' ', '[ _]?')}", code)] == []
