"""Import rules that import-linter has no contract for."""

import ast
import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp

import holdfast

ROOT = Path(__file__).parents[1]

NAME_IN_TESTS = re.compile(r"(?<!def )\btest_")
"""What begins like a module of tests, and is not a test itself."""

STATEMENT = re.compile(r"\s*(select|insert into|update \w+\s+set|delete from|with (recursive )?\w+ as)\s")
"""How a statement of SQL begins."""


@functools.cache
def import_graph() -> grimp.ImportGraph:
    """Which modules of the server import which."""
    return grimp.build_graph("holdfast", cache_dir=None)


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
    strangers = {
        (importer, module)
        for module in import_graph().modules
        if module.endswith((".sql", "_sql"))
        for importer in import_graph().find_modules_that_directly_import(module)
        if not importer.startswith(f"{module.rpartition('.')[0]}.")
    }

    assert strangers == set()


def test_pages_of_consoles_have_no_statements() -> None:
    packages = Path(holdfast.__file__).parent
    statements = [
        f"{path.relative_to(packages)}:{node.lineno}"
        for path in sorted(packages.glob("*/console/**/*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and STATEMENT.match(node.value)
    ]

    assert statements == []


def test_models_run_no_statements() -> None:
    packages = Path(holdfast.__file__).parent
    functions = [
        f"{path.relative_to(packages)}: {function.name}"
        for path in sorted(packages.rglob("model.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in function.args.args
        if argument.annotation and re.match(r"(Reader|Tx|Database)\b", ast.unparse(argument.annotation))
    ]

    assert functions == []


def test_the_contract_about_http_covers_every_operations_model_and_sql_module_of_the_services() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [contract for contract in contracts if contract["name"].startswith("Operations, models and")]
    graph = import_graph()
    covered = {module for pattern in contract["source_modules"] for module in graph.find_matching_modules(pattern)}
    modules = {
        module for module in graph.modules if re.match(r"holdfast\.(?!kit\.).*\.(operations|model|sql)$", module)
    }

    assert len(modules) > 50
    assert modules - covered == set()


def test_a_service_imports_libraries_that_few_processes_use_only_when_they_are_used() -> None:
    loads = (
        "import sys, holdfast.events.service; print({'nh3', 'markdown_it', 'py_arkworks_bls12381'} & {*sys.modules})"
    )
    imported = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True).stdout

    assert imported == "set()\n"


def test_only_tests_and_what_pytest_loads_stand_beside_the_folders_of_tests() -> None:
    tests = ROOT / "tests"
    [plugins] = re.findall(
        r"pytest_plugins = \[(.*?)\]", (tests / "conftest.py").read_text(encoding="utf-8"), re.DOTALL
    )
    names = {"__init__", "conftest", *re.findall(r"tests\.(\w+)", plugins)}

    assert {path.stem for path in tests.glob("*.py") if not path.name.startswith("test_")} == names


def test_helpers_are_not_imported_from_modules_with_tests() -> None:
    imports = [
        f"{path}: {module}"
        for folder in ("tests", "benchmarks")
        for path, text in modules_that_may_import_tests(ROOT / folder).items()
        for node in ast.walk(ast.parse(text))
        for module in imported_modules(node)
        if any(part.startswith("test_") for part in module.split("."))
    ]

    assert imports == []


def modules_that_may_import_tests(folder: Path) -> dict[str, str]:
    """The texts of the modules that may name a module of tests. To parse all of them takes seconds."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))
    }
    return {path: text for path, text in texts.items() if NAME_IN_TESTS.search(text)}


def imported_modules(node: ast.AST) -> list[str]:
    """What a statement imports: modules, and names that may be modules."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names):
            return [f"{module or ''}.{alias.name}" for alias in names]
        case _:
            return []


def test_statements_of_the_kit_have_no_parameter_of_one_service() -> None:
    kit = Path(holdfast.__file__).parent / "kit"
    named = [
        f"{path.relative_to(kit)}: {parameter}"
        for path in sorted(kit.rglob("*.py"))
        for parameter in re.findall(r"%\((?:organizer|event|merchant|shop)_id\)s", path.read_text(encoding="utf-8"))
    ]

    assert named == []
