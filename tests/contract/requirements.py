"""The table in `requirements.md`, and the mark that ties a test to a row of it.

`python -m tests.contract.requirements` prints each promise with the tests that hold us to it.
"""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

TABLE = Path(__file__).with_name("requirements.md")
ROW = re.compile(r"^\| (?!id )(?P<id>[a-z][\w.-]+) \| (?P<sentence>[^|]+) \|$")

F = TypeVar("F", bound=Callable[..., object])


def requirement(*ids: str) -> Callable[[F], F]:
    """Mark a test as holding us to the promises with these ids."""
    unknown = set(ids) - promises().keys()
    assert not unknown, f"requirements.md has no row {', '.join(sorted(unknown))}"
    return lambda test: test


def promises() -> dict[str, str]:
    """The sentence of each promise, by its id."""
    rows = (ROW.match(line) for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["sentence"] for row in rows if row}


def promises_by_test() -> dict[str, set[str]]:
    """The promises that each test of this directory names, read from its decorators."""
    tests: dict[str, set[str]] = {}
    for path in sorted(TABLE.parent.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and node.name.startswith("test_"):
                tests[f"{path.name}::{node.name}"] = {
                    str(argument.value)
                    for mark in node.decorator_list
                    if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "requirement"
                    for argument in mark.args
                    if isinstance(argument, ast.Constant)
                }
    return tests


def coverage() -> dict[str, list[str]]:
    """The tests that hold us to each promise, by its id."""
    tests = promises_by_test()
    return {id: [test for test, ids in tests.items() if id in ids] for id in promises()}


if __name__ == "__main__":
    sentences = promises()
    for id, tests in coverage().items():
        print(f"{id}: {sentences[id]}", *tests, sep="\n    ")
