"""Names of classes: no two of a service share one."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

ON_PURPOSE = {"Resources", "Settings"}
"""Classes that each service, and the kit, has one of."""

CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
"""The definition of a class. To parse all modules takes seconds."""


def area(path: str) -> str:
    """The part of the tree in which class names are unique: a service, the kit, a partner of the demo."""
    return "/".join(path.split("/")[:2])


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


def test_no_two_classes_of_a_service_or_of_the_kit_share_a_name() -> None:
    assert len(modules()) > 500
    assert repeated_classes(modules()) == []


def test_a_repeated_class_name_is_noticed_within_one_service_only() -> None:
    text = "class Order: ..."

    assert repeated_classes({"holdfast/events/a.py": text, "holdfast/events/b.py": text}) == [
        "Order: holdfast/events/a.py, holdfast/events/b.py"
    ]
    assert (
        repeated_classes({"holdfast/events/a.py": text, "holdfast/kit/a.py": text, "holdfast_demo/shopify/a.py": text})
        == []
    )
