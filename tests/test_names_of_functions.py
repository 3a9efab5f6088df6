"""The name of a private function says what it does: a caller reads no docstring of it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

PRIVATE_VERBS_ALONE = {
    *("_lost", "_tell", "_ended", "_notified", "_opened", "_changed", "_touched", "_fresh", "_refused", "_failed"),
    *("_known", "_named"),
}
"""Names that say too little of a private function."""

PRIVATE_FUNCTION = re.compile(r"^[ \t]*(?:async )?def _(\w+)", re.MULTILINE)
PUBLIC_FUNCTION = re.compile(r"^[ \t]*(?:async )?def ([a-z]\w*)", re.MULTILINE)
"""The definition of a function. To parse all modules takes seconds."""


def texts(folder: Path) -> dict[str, str]:
    """The modules in a folder, by their paths in the project."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))
    }


def private_functions_without_objects(path: str, text: str) -> list[str]:
    """The private functions of a module that are named by a verb or participle alone."""
    return [f"{path} _{name}" for name in PRIVATE_FUNCTION.findall(text) if f"_{name}" in PRIVATE_VERBS_ALONE]


def repeated_functions(path: str, text: str) -> list[str]:
    """The private functions of a module or class beside a public one whose name differs by the underscore only."""
    if {*PRIVATE_FUNCTION.findall(text)}.isdisjoint(PUBLIC_FUNCTION.findall(text)):
        return []
    findings: list[str] = []
    tree = ast.parse(text)
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))):
        functions = {node.name for node in scope.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        findings += [f"{path} _{name}" for name in sorted(functions) if f"_{name}" in functions]
    return findings


def test_no_private_function_is_named_by_a_participle_alone() -> None:
    modules = {path: text for source in ROOT.glob("packages/*/src/*") for path, text in texts(source).items()}

    assert len(modules) > 500
    assert [name for path, text in modules.items() for name in private_functions_without_objects(path, text)] == []


def test_a_private_function_that_is_named_by_a_participle_alone_is_noticed() -> None:
    assert [*private_functions_without_objects("x.py", "def _lost(): ...")] == ["x.py _lost"]
    assert [*private_functions_without_objects("x.py", "def _lost_entries(): ...")] == []


def test_no_private_function_stands_beside_a_public_one_of_the_same_name() -> None:
    folders = (ROOT / "packages", ROOT / "tests", ROOT / "benchmarks")
    modules = {path: text for folder in folders for path, text in texts(folder).items()}

    assert len(modules) > 1500
    assert [name for path, text in modules.items() for name in repeated_functions(path, text)] == []


def test_a_private_function_beside_a_public_one_of_the_same_name_is_noticed() -> None:
    body = "async def verify(): ...\n{indent}def _verify(): ..."
    assert repeated_functions("x.py", body.format(indent="")) == ["x.py _verify"]
    assert repeated_functions("x.py", f"class C:\n  {body.format(indent='  ')}") == ["x.py _verify"]
    assert repeated_functions("x.py", "def verify(): ...\nclass C:\n  def _verify(): ...") == []
