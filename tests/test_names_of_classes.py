"""Names of classes: each has a noun, and no two of a service share one."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ON_PURPOSE = {"Resources", "Settings"}
"""Classes that each service, and the kit, has one of."""

PARTICIPLES_ON_PURPOSE = {"Batched"}
"""How an operation runs, beside `Single` and `Stepwise`: the base is the noun, `RunMode`."""

IRREGULAR_PARTICIPLES = {
    *("Begun", "Bought", "Broken", "Built", "Chosen", "Done", "Drawn", "Freed", "Gone", "Held", "Lost", "Made", "Met"),
    *("Paid", "Seen", "Sent", "Sold", "Spent", "Undone", "Withdrawn", "Won", "Written"),
}
"""Participles that do not end in -ed, beside those that `test_names.py` has."""

PARTICIPLE = re.compile(rf"_?(?:[A-Z][a-z]*[^e]ed|{'|'.join(sorted(IRREGULAR_PARTICIPLES))})(?:In|Out|Up|Off|Back)?")
"""A participle alone, such as Accepted, or CheckedIn. `Feed` is a noun."""

CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
"""The definition of a class. To parse all modules takes seconds."""


def area(path: str) -> str:
    """The part of the tree in which class names are unique: a service, the kit, a partner of the demo, the verifier."""
    return "holdfast_verify" if path.startswith("holdfast_verify/") else "/".join(path.split("/")[:2])


def nounless_classes(path: str, text: str) -> list[str]:
    """The classes of a module that are named by a participle alone: it says what happened, and not to what."""
    return [f"{path} {name}" for name in CLASS.findall(text) if PARTICIPLE.fullmatch(name)]


def repeated_classes(modules: Mapping[str, str]) -> list[str]:
    """The classes of one area that share a name."""
    homes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, text in modules.items():
        for name in CLASS.findall(text):
            if name not in ON_PURPOSE:
                homes[area(path), name].append(path)
    return [f"{name}: {', '.join(paths)}" for (_, name), paths in homes.items() if len(paths) > 1]


def modules() -> dict[str, str]:
    """The modules of the packages, by their paths below `src`."""
    return {
        path.relative_to(source.parent).as_posix(): path.read_text(encoding="utf-8")
        for source in sorted(ROOT.glob("packages/*/src/*"))
        for path in sorted(source.rglob("*.py"))
    }


def test_no_two_classes_of_a_service_the_kit_or_the_verifier_share_a_name() -> None:
    assert len(modules()) > 500
    assert repeated_classes(modules()) == []


def test_no_class_is_a_participle_alone() -> None:
    classes = [name for path, text in modules().items() for name in nounless_classes(path, text)]

    assert [name for name in classes if name.rpartition(" ")[2] not in PARTICIPLES_ON_PURPOSE] == []
    assert {name.rpartition(" ")[2] for name in classes} == PARTICIPLES_ON_PURPOSE


@pytest.mark.parametrize("name", ["Accepted", "_Related", "CheckedIn", "Sent"])
def test_a_class_that_is_a_participle_alone_is_noticed(name: str) -> None:
    assert nounless_classes("x.py", f"class {name}(Struct):") == [f"x.py {name}"]


@pytest.mark.parametrize("name", ["AcceptedRegistration", "Feed", "SentMail", "Refund"])
def test_a_class_with_a_noun_is_accepted(name: str) -> None:
    assert nounless_classes("x.py", f"class {name}(Struct):") == []


def test_a_repeated_class_name_is_noticed_within_one_service_only() -> None:
    text = "class Order: ..."

    assert repeated_classes({"holdfast/events/a.py": text, "holdfast/events/b.py": text}) == [
        "Order: holdfast/events/a.py, holdfast/events/b.py"
    ]
    assert (
        repeated_classes({"holdfast/events/a.py": text, "holdfast/kit/a.py": text, "holdfast_demo/shopify/a.py": text})
        == []
    )
