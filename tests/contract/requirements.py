"""The table in `requirements.md`, and the mark that ties a test to a row of it."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

TABLE = Path(__file__).with_name("requirements.md")
ROW = re.compile(r"^\| (?!id )(?P<id>[a-z][\w.-]+) \| (?P<sentence>.+?) \|(?P<tests>.*)\|$")

F = TypeVar("F", bound=Callable[..., object])


def requirement(*ids: str) -> Callable[[F], F]:
    """Mark a test as holding us to the promises with these ids."""
    unknown = set(ids) - promised().keys()
    assert not unknown, f"requirements.md has no row {', '.join(sorted(unknown))}"
    return lambda test: test


def promised() -> dict[str, set[str]]:
    """The tests that the table names for each id."""
    rows = (ROW.match(line) for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {row["id"]: set(re.findall(r"`([^`]+)`", row["tests"])) for row in rows if row}


def declared() -> dict[str, set[str]]:
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


def rewrite() -> None:
    """Fill the last column of the table from the tests."""
    tests = declared()

    def filled(line: str) -> str:
        row = ROW.match(line)
        if not row:
            return line
        names = " ".join(f"`{test}`" for test, ids in tests.items() if row["id"] in ids)
        return f"| {row['id']} | {row['sentence']} | {names} |"

    lines = TABLE.read_text(encoding="utf-8").splitlines()
    TABLE.write_text("\n".join(filled(line) for line in lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    rewrite()
