"""Names say what a thing is: a noun of the field, a verb and its object, a limit and its unit."""

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.releases import releases, schema_of_release

ROOT = Path(__file__).parents[1]
SOURCES = [*(ROOT / "packages").glob("*/src/*")]
SCRIPTS = (*SOURCES, ROOT / "extensions", ROOT / "docs")
"""Folders with JavaScript of our own."""

BARE_WORDS = {
    *("asked", "said", "told", "shown", "kept", "taken", "found", "given", "wanted"),
    *("each", "some", "whole", "own", "beside", "there", "elsewhere"),
}
"""Participles and pronouns, which say nothing about what they name."""

PACKAGE_WORDS = {"known", "stored", "changed", "started"}
"""Participles that no name of the packages is. In a test the sentence of its name says what they stand for."""

RIDDLES = {
    *("standing", "fate", "portion", "brisk", "look_at"),
    *("world", "desk", "deed", "deeds", "sought", "does"),
}
"""Words that have a plain one (status, batch, check, state, page, action, search), also as a part of a name."""

SENTENCE = " test_"
"""What stands before the name of a test in a finding. Such a name is a sentence, and has verbs."""

PARTICIPLES = {"asked", "said", "told", "shown", "kept", "taken", "found", "given", "wanted"}
"""Words that say nothing as a part of a name either: what was found, or kept, has a name of its own."""

OUTSIDE_NAMES = {
    "given_up": "a field of an entry of a public log",
    "mails_wanted": "a field of the file with the data of a person",
    "name_taken": "the code of a problem",
    "not_found": "the code of a problem",
    "taken_per_day": "a field of an answer",
    "told_at": "a field of a scan, which devices at an entrance have stored",
    "asked_at": "a column of a table that processes of a release use",
    "shown_title": "an SQL function that processes of a release call",
    "taken_back_at": "a column of a table that processes of a release use",
}
"""Names with these words that others know, and where."""

BARE_PARAMETERS = {"most", "place", "known", *BARE_WORDS}
"""Words that say nothing as parameters of SQL."""

BARE_ALIASES = {"moved", *PACKAGE_WORDS, *BARE_WORDS}
"""Words that say nothing as aliases of SQL, or as names of queries of a `with` clause."""

UNITLESS_CONSTANTS = {
    *("MOST", "LARGEST", "LONGEST", "SHORTEST", "AT_ONCE", "PORTION", "PATIENCE", "SECONDS", "LOOK", "PAUSES"),
    *("PATROL_SECONDS", "LEAST", "FEWEST"),
}
"""Constants that say neither what is limited nor the unit."""

AMBIGUOUS_CONSTANTS = {
    *("BATCH_SIZE", "CHANNEL", "DAYS", "EMAIL", "HEADER", "KEYS", "KIND", "LABELS", "LIMITS", "NAME", "PAGE_SIZE"),
    "PATH",
}
"""Constants that say what they are only beside the name of their module."""

NOUNLESS_CLASSES = {
    *("Refused", "Shown", "Asked", "Line", "Wanted", "Found", "Taken", "Kept", "Told", "Said", "Given", "Standing"),
}
"""Classes without a noun of the field."""

COLUMNS = {
    ("holdfast/inventory/orders/model.py", "taken"),
    ("holdfast/inventory/orders/sql.py", "taken"),
    ("holdfast/inventory/stock/pool_history.py", "taken"),
    ("holdfast/inventory/sync/cart_check.py", "wanted"),
    ("holdfast/events/payments/operations.py", "kept"),
    ("holdfast/events/registrations/own_registration.py", "moved"),
    ("holdfast/inventory/sync/model.py", "stored"),
    ("holdfast/inventory/sync/reports.py", "stored"),
    ("holdfast/events/console/live_changes.py", "changed"),
    ("holdfast/inventory/console/live_changes.py", "changed"),
}
"""Fields and aliases that are named as a column of a table, or as a member of an answer or of a message."""

BAD_NAMES = BARE_WORDS | UNITLESS_CONSTANTS | NOUNLESS_CLASSES

DECLARATION = re.compile(r"\b(?:class|function|const|let|var)\s+\*?\s*(\w+)|\((\w+)\)\s*=>|\b(\w+)\s*=>")
"""A class, function or variable of JavaScript, or the only parameter of an arrow function."""


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that a module defines (functions, classes, parameters, variables, attributes), each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case _:
                pass


BAD_WORD = re.compile(rf"\b_*(?:{'|'.join(sorted(BAD_NAMES))})\b")
TEXTS = re.compile(
    r"#[^\n]*"
    r"""|(?P<kind>\b[A-Za-z]{1,2})?(?:\"{3}(?:\\.|[^\\])*?\"{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL,
)
"""Comments and strings, with the letters before them."""


def can_have_bad_name(text: str) -> bool:
    """Whether a bad word stands in the code of a module. Most have none, and to parse them takes most of the time."""
    code = TEXTS.sub(lambda match: match[0] if "f" in (match["kind"] or "").lower() else "", text)
    return BAD_WORD.search(code) is not None


def is_bad(name: str) -> bool:
    return name.lstrip("_") in BAD_NAMES


RIDDLE = re.compile(rf"(?:^|_)(?:{'|'.join(sorted(RIDDLES))})(?:_|$)")


def riddles(path: str, tree: ast.Module) -> list[str]:
    """The names of a module that have a plain word, and the module if it is named like a builtin."""
    module = path.rpartition("/")[2].removesuffix(".py")
    bad = [f"{path}:{line} {name}" for line, name in names(tree) if RIDDLE.search(name.lower())]
    return [f"{path}:1 {module}", *bad] if hasattr(builtins, module) and module[0] != "_" else bad


COMPOUND = re.compile(rf"(?:^|_)(?:{'|'.join(sorted(PARTICIPLES))})(?:_|$)")
OUTSIDE_NAME = re.compile(rf"(?:^|(?<=_))(?:{'|'.join(OUTSIDE_NAMES)})(?=_|$)")
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
ALIAS = re.compile(r"\bas (?:materialized )?([a-z_]+_[a-z_]+|[a-z_]+(?= \())")
"""An alias in SQL of several words, or of a function with its columns."""

SQL_PARAMETER = re.compile(r"%\((\w+)\)s")
CSS_CLASS = re.compile(r"\.(-?[a-zA-Z_][\w-]*)(?=[^{};]*\{)")


def has_participle(name: str) -> bool:
    """Whether a participle is a part of a name, beside names that others know."""
    words = CAPITAL.sub("_", name).lower().replace("-", "_")
    return COMPOUND.search(OUTSIDE_NAME.sub("", words)) is not None


def participles(path: str, tree: ast.Module) -> list[str]:
    """The names of a module, and of its SQL, with a participle as one of several words, and such keyword arguments."""
    nodes = [*ast.walk(tree)]
    texts = [(node.lineno, node.value) for node in nodes if isinstance(node, ast.Constant)]
    candidates = [
        *(item for item in names(tree) if "_" in item[1].strip("_") or CAPITAL.search(item[1])),
        *((node.value.lineno, node.arg) for node in nodes if isinstance(node, ast.keyword) and node.arg),
        *(
            (line, name)
            for line, text in texts
            if isinstance(text, str)
            for name in [*SQL_PARAMETER.findall(text), *(ALIAS.findall(text) if SQL.match(text) else [])]
        ),
        (1, path.rpartition("/")[2].removesuffix(".py")),
    ]
    return [f"{path}:{line} {name}" for line, name in candidates if has_participle(name)]


SUSPICION = re.compile(
    rf"\b(?:{'|'.join(PARTICIPLES)})=(?!=)|_(?:{'|'.join(PARTICIPLES)})(?=_|\b)|\b(?:{'|'.join(PARTICIPLES)})_"
    rf"|(?:{'|'.join(PARTICIPLES).title()})(?=[A-Z])|(?<=[a-z])(?:{'|'.join(PARTICIPLES).title()})\b"
    rf"|(?:\b|_)(?:{'|'.join(RIDDLES)})(?:\b|_)|%\((?:{'|'.join(BARE_PARAMETERS)})\)s"
    rf"|_(?:{'|'.join(PARTICIPLES).upper()})(?=_|\b)|\b(?:{'|'.join(PARTICIPLES).upper()})_"
    rf"|(?:\b|_)(?:{'|'.join(RIDDLES).upper()})(?:\b|_)"
    r"|[(,]\s*of\s*[:,)=]|\blambda\b[^:]*\bof\b"
)
NAME_OF_TEST = re.compile(r"def test_\w+")


def can_have_riddle(text: str) -> bool:
    """Whether a participle, a riddle, a preposition or a bare parameter may be in a module, beside names of tests."""
    return SUSPICION.search(NAME_OF_TEST.sub("def test", text)) is not None


SQL = re.compile(r"^\s*(?:\(?select|insert|update|delete|with)\b", re.IGNORECASE)
BARE_PARAMETER = re.compile(rf"%\((?:{'|'.join(sorted(BARE_PARAMETERS))})\)s")
BARE_ALIAS = re.compile(rf"\bas ({'|'.join(sorted(BARE_ALIASES))})\b")
BARE_QUERY = re.compile(rf"\b({'|'.join(sorted(BARE_ALIASES))}) as (?:(?:not )?materialized )?\(")
SQL_COMMENT = re.compile(r"--[^\n]*")


def bare_parameters(path: str, tree: ast.Module) -> list[str]:
    """The parameters of the SQL in a module that are bare words. The placeholders of messages are not SQL."""
    texts = [(node.lineno, node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [
        f"{path}:{line} {match}"
        for line, text in texts
        if isinstance(text, str) and SQL.match(text)
        for match in BARE_PARAMETER.findall(text)
    ]


def bare_aliases(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The aliases and `with` queries of a module's SQL that are bare words, each with the line at which it begins."""
    sentences = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in sentences:
            statement = SQL_COMMENT.sub("", node.value)
            for name in [*BARE_ALIAS.findall(statement), *BARE_QUERY.findall(statement)]:
                yield node.lineno, name


def bad_names(path: str, tree: ast.Module) -> list[str]:
    """What is wrong with the names of a module and of what it defines."""
    module = path.rpartition("/")[2].removesuffix(".py")
    candidates = [(1, module), *names(tree)]
    return [f"{path}:{line} {name}" for line, name in candidates if is_bad(name) and (path, name) not in COLUMNS]


def bad_declarations(path: str, script: str) -> list[str]:
    """What is wrong with the names that a script declares."""
    return [
        f"{path}:{number} {name}"
        for number, line in enumerate(script.splitlines(), start=1)
        for names_of_line in DECLARATION.findall(line.partition("//")[0])
        for name in names_of_line
        if is_bad(name)
    ]


def ambiguous_imports(path: str, tree: ast.Module) -> list[str]:
    """The constants that a module imports without the name of their module, and that say nothing without it."""
    return [
        f"{path}:{node.lineno} {alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in AMBIGUOUS_CONSTANTS and alias.asname is None
    ]


def trees(folder: Path, base: Path) -> dict[str, ast.Module]:
    """The syntax trees of the modules in a folder, by their paths below another."""
    return {path: ast.parse(text) for path, text in texts(folder, base).items()}


def texts(folder: Path, base: Path) -> dict[str, str]:
    """The modules in a folder, by their paths below another."""
    return {
        path.relative_to(base).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))
    }


def bad_names_in(folder: Path, base: Path) -> list[str]:
    """What is wrong with the names of the modules in a folder."""
    modules = texts(folder, base).items()
    trees = {path: ast.parse(text if can_have_bad_name(text) else "") for path, text in modules}
    return [name for path, tree in trees.items() for name in bad_names(path, tree)]


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """The syntax trees of all modules of the packages, by path."""
    return {path: tree for source in SOURCES for path, tree in trees(source, source.parent).items()}


@pytest.fixture(scope="module")
def modules_of_tests() -> dict[str, ast.Module]:
    """The syntax trees of all modules of tests and benchmarks, by path; an empty one for a module without a riddle."""
    return {
        path: ast.parse(text if can_have_riddle(text) else "")
        for folder in ("tests", "benchmarks")
        for path, text in texts(ROOT / folder, ROOT).items()
    }


def test_no_name_is_a_bare_participle_pronoun_or_limit_without_its_unit() -> None:
    assert [name for source in SOURCES for name in bad_names_in(source, source.parent)] == []


def prepositions(path: str, tree: ast.Module) -> list[str]:
    """The arguments of a module that are named `of`. Such a name says nothing of what the argument is."""
    return [f"{path}:{node.lineno} of" for node in ast.walk(tree) if isinstance(node, ast.arg) and node.arg == "of"]


def test_no_argument_is_a_preposition(modules: dict[str, ast.Module], modules_of_tests: dict[str, ast.Module]) -> None:
    assert [name for path, tree in {**modules, **modules_of_tests}.items() for name in prepositions(path, tree)] == []


@pytest.mark.parametrize("text", ["def f(of: int) -> None: ...", "def f(x, *, of): ...", "f = lambda of: of"])
def test_an_argument_that_is_a_preposition_is_noticed(text: str) -> None:
    assert prepositions("x.py", ast.parse(text)) == ["x.py:1 of"]
    assert can_have_riddle(text)


def test_no_name_is_a_riddle_and_no_module_is_named_like_a_builtin(
    modules: dict[str, ast.Module], modules_of_tests: dict[str, ast.Module]
) -> None:
    findings = [name for path, tree in {**modules, **modules_of_tests}.items() for name in riddles(path, tree)]

    assert [name for name in findings if SENTENCE not in name] == []


def test_no_parameter_of_a_statement_is_a_bare_word(
    modules: dict[str, ast.Module], modules_of_tests: dict[str, ast.Module]
) -> None:
    assert [
        name for path, tree in {**modules, **modules_of_tests}.items() for name in bare_parameters(path, tree)
    ] == []


def test_no_alias_of_a_statement_is_a_bare_word(modules: dict[str, ast.Module]) -> None:
    assert [
        f"{path}:{line} {name}"
        for path, tree in modules.items()
        for line, name in bare_aliases(tree)
        if (path, name) not in COLUMNS
    ] == []


def test_no_name_in_the_packages_is_a_participle_that_tests_may_have(modules: dict[str, ast.Module]) -> None:
    assert [
        f"{path}:{line} {name}"
        for path, tree in modules.items()
        for line, name in [(1, Path(path).stem), *names(tree)]
        if name.strip("_") in PACKAGE_WORDS and (path, name) not in COLUMNS
    ] == []


def test_no_name_has_a_participle_that_says_nothing(
    modules: dict[str, ast.Module], modules_of_tests: dict[str, ast.Module]
) -> None:
    findings = [name for path, tree in {**modules, **modules_of_tests}.items() for name in participles(path, tree)]

    assert [name for name in findings if SENTENCE not in name] == []


def test_no_template_statement_or_class_of_css_has_a_participle_that_says_nothing() -> None:
    endings = {".html", ".js", ".sql", ".css"}
    paths = [path for folder in [*SOURCES, ROOT / "extensions"] for path in folder.rglob("*.*")]
    files = [path for path in paths if path.suffix in endings]
    styles = [path.read_text(encoding="utf-8") for path in files if path.suffix == ".css"]

    # A function of the last release keeps its name: processes of that release call it while an upgrade lasts.
    schemas = [schema_of_release(releases()[-1], service) for service in ("events", "inventory")]
    released = set(re.findall(r"^CREATE FUNCTION (\w+)", "\n".join(schemas), re.MULTILINE))

    assert len(files) > 300
    assert [path.name for path in files if has_participle(path.stem) and path.stem not in released] == []
    assert [name for style in styles for name in CSS_CLASS.findall(style) if has_participle(name)] == []


def test_every_name_that_others_know_is_still_used() -> None:
    paths = [path for source in SOURCES for ending in ("py", "sql") for path in source.rglob(f"*.{ending}")]
    text = "\n".join(path.read_text(encoding="utf-8").lower() for path in paths if path.name != "schema.sql")

    assert [name for name in OUTSIDE_NAMES if name not in text] == []


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_no_name_in_tests_and_benchmarks_is_a_bare_participle_or_limit_without_its_unit(folder: str) -> None:
    assert bad_names_in(ROOT / folder, ROOT) == []


def test_no_name_in_a_script_is_a_bare_participle_or_limit_without_its_unit() -> None:
    paths = [path for folder in SCRIPTS for path in sorted(folder.rglob("*.*js")) if not path.is_symlink()]

    assert len(paths) > 10
    assert [
        name
        for path in paths
        for name in bad_declarations(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ] == []


def test_no_constant_is_imported_whose_name_says_too_little(modules: dict[str, ast.Module]) -> None:
    assert [name for path, tree in modules.items() for name in ambiguous_imports(path, tree)] == []


def test_an_imported_constant_whose_name_says_too_little_is_noticed() -> None:
    assert ambiguous_imports("x.py", ast.parse("from y import PATH")) == ["x.py:1 PATH"]
    assert ambiguous_imports("x.py", ast.parse("from y import EVENT_PATH\nfrom y import PATH as Y_PATH")) == []


def test_every_exception_of_a_column_is_still_needed(modules: dict[str, ast.Module]) -> None:
    defined = {(path, name) for path, _ in COLUMNS for _, name in [*names(modules[path]), *bare_aliases(modules[path])]}

    assert COLUMNS - defined == set()


@pytest.mark.parametrize(
    "text",
    [
        "told = 1",
        "def found(): ...",
        "def f(_asked): ...",
        "for each in (): ...",
        "MOST = 3",
        "class C:\n    kept: int",
        "self.shown = 1",
        "from x import y as given",
        'rows = "#", f"{[each for each in ()]}"',
    ],
)
def test_a_bad_name_is_noticed(text: str) -> None:
    assert can_have_bad_name(text)
    assert len(bad_names("kit/module.py", ast.parse(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "fine = 1  # found",
        '"""What is "said" here."""',
        """fine = 'said "so"'""",
        'fine = "\\"", "told"',
        'fine = r"\\w", "told"',
        "fine_told = 1",
    ],
)
def test_a_word_of_a_text_is_no_name(text: str) -> None:
    assert not can_have_bad_name(text)
    assert bad_names("kit/module.py", ast.parse(text)) == []


@pytest.mark.parametrize(
    "text",
    ["class Refused extends Error {}", "const told = 1;", "rows.map((each) => each.id)", "for (const each of [])"],
)
def test_a_bad_name_in_a_script_is_noticed(text: str) -> None:
    assert len(bad_declarations("x.js", text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def look_at_pool(): ...",
        "fate = 1",
        "BRISK = 1",
        "def f(one_portion): ...",
        "class C:\n    standing: int",
        "self._world = 1",
    ],
)
def test_a_riddle_is_noticed(text: str) -> None:
    assert len(riddles("kit/module.py", ast.parse(text))) == 1
    assert can_have_riddle(text)


@pytest.mark.parametrize(
    "text",
    [
        "class FoundLog: ...",
        "MAX_SHOWN = 1",
        "def f(is_told): ...",
        "f(asked=1)",
        'run("select 1 as kept_proof")',
        'run("select 1 from x where y = %(wanted' + '_id)s")',
    ],
)
def test_a_participle_in_a_name_is_noticed(text: str) -> None:
    assert len(participles("kit/module.py", ast.parse(text))) == 1
    assert can_have_riddle(text)


@pytest.mark.parametrize("text", ["NOT_FOUND = 1", "EVENT_NOT_FOUND = 1", "class TakenessTest: ...", "told_at = 1"])
def test_a_name_that_others_know_is_accepted(text: str) -> None:
    assert participles("kit/module.py", ast.parse(text)) == []


def test_a_module_that_is_named_like_a_builtin_is_noticed() -> None:
    assert riddles("kit/set.py", ast.parse("")) == ["kit/set.py:1 set"]


def test_a_bare_parameter_of_sql_is_noticed_and_a_placeholder_of_a_message_is_not() -> None:
    statement = 'run("select 1 limit %(most)s")'
    assert can_have_riddle(statement)
    assert len(bare_parameters("kit/module.py", ast.parse(statement))) == 1
    assert bare_parameters("kit/module.py", ast.parse('message("must be at most %(most)s")')) == []


def test_a_bare_alias_of_sql_is_noticed_and_a_sentence_is_not() -> None:
    join = 'JOIN = "join catalog_variants as known on true"'
    assert [*bare_aliases(ast.parse(join))] == [(1, "known")]
    queries = 'query("with moved as (select 1), stored as materialized (select 2) select")'
    assert [*bare_aliases(ast.parse(queries))] == [(1, "moved"), (1, "stored")]
    assert [*bare_aliases(ast.parse('"""It is as known as the other."""\nquery("select 1 -- as known before")'))] == []


def test_a_bad_module_name_is_noticed() -> None:
    assert bad_names("kit/elsewhere.py", ast.parse("")) == ["kit/elsewhere.py:1 elsewhere"]
