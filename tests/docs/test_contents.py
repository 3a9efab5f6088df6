"""Lists in documents are complete: import rules, decisions, and the tree of folders."""

import re
import tomllib

import pytest

from tests.contents import CONTRIBUTING, DECISIONS, ROOT, SUBJECTS, UNUSED_NUMBERS, contributing, decisions

SOURCE = ROOT / "packages" / "holdfast-server" / "src" / "holdfast"


def tree() -> str:
    """The tree of `CONTRIBUTING.md`."""
    [block] = re.findall(
        r"^## The tree\n```\n(.*?)^```", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return block


def test_the_import_rules_are_those_of_the_linter() -> None:
    assert CONTRIBUTING.read_text(encoding="utf-8") == contributing(), "python -m tests.contents"


def test_every_decision_that_holds_is_listed() -> None:
    assert (DECISIONS / "README.md").read_text(encoding="utf-8") == decisions(), "python -m tests.contents"


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
        "SUBJECTS in tests/contents.py"
    )


def test_a_decision_that_another_replaces_is_one_line() -> None:
    replaced = [path for path in DECISIONS.glob("0*.md") if "\nReplaced by" in path.read_text(encoding="utf-8")]

    assert replaced
    assert [path.name for path in replaced if len(path.read_text(encoding="utf-8").splitlines()) > 3] == []


@pytest.mark.parametrize("part", ["kit", "accounts", "inventory", "events", "."])
def test_the_tree_has_every_folder(part: str) -> None:
    folders = {path.parent.name for path in (SOURCE / part).glob("*/__init__.py")}

    assert {name for name in folders if not re.search(rf"\b{name}/", tree())} == set()


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


def test_the_glossary_has_at_most_thirty_words() -> None:
    glossary = CONTRIBUTING.read_text(encoding="utf-8").partition("## Glossary\n")[2].partition("\n## ")[0]
    _, *rows = [line for line in glossary.splitlines() if line.startswith("| ")]

    assert 20 < len(rows) <= 30
