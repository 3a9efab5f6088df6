"""Import rules that import-linter has no contract for."""

import ast
from pathlib import Path

import grimp

import holdfast


def test_no_alias_reexports_a_statement_of_another_module() -> None:
    aliases = [
        f"{path}: {ast.unparse(statement)}"
        for path in sorted(Path(holdfast.__file__).parent.rglob("*.py"))
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Attribute)
        and ast.unparse(statement.value.value).endswith("sql")
    ]

    assert aliases == []


def test_the_sql_of_a_noun_is_imported_by_its_own_folder_only() -> None:
    graph = grimp.build_graph("holdfast", cache_dir=None)
    strangers = {
        (importer, module)
        for module in graph.modules
        if module.endswith(".sql")
        for importer in graph.find_modules_that_directly_import(module)
        if not importer.startswith(module.removesuffix("sql"))
    }

    assert strangers == set()
