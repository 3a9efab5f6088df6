"""What docstrings and comments name is there: members, arguments, exceptions, classes, files. Sentences are plain."""

import ast
import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import pytest

ROOT = Path(__file__).parents[1]

LISTED = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*) {2,}\S")
"""A line of a docstring that explains one or more names: two spaces stand behind them."""

CITED_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|js))`")
"""A file that a docstring or a comment cites with its folder."""

CITED_FROM = (
    *(ROOT / "packages").glob("*/src/holdfast/"),
    *(ROOT / "packages").glob("*/src/holdfast/events/"),
    *(ROOT / "packages").glob("*/src"),
    ROOT,
)
"""What the path of a cited file begins from: the server, its events service, the name of a package, or the project."""

MODULES = sorted(
    path for pattern in ("packages/*/src/**/*.py", "tests/**/*.py", "benchmarks/**/*.py") for path in ROOT.glob(pattern)
)

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def arguments_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    variable = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variable)}


def members_of(documented: Documented) -> set[str]:
    """The arguments of a function; the fields, attributes and methods of a class, and the arguments of these."""
    if not isinstance(documented, ast.ClassDef):
        return arguments_of(documented)
    names: set[str] = set()
    for node in ast.walk(documented):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {node.name, *arguments_of(node)}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


Nodes = Sequence[ast.AST]
"""The nodes of a module."""

Check = Callable[[str, Nodes], Iterator[str]]
"""What is wrong in a module, by its path and its nodes."""


def nodes_of(text: str) -> Nodes:
    return [*ast.walk(ast.parse(text))]


def absent_members(path: str, nodes: Nodes) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Documented):
            lines = (ast.get_docstring(node) or "").splitlines()[1:]
            listed = {name for line in lines if (match := LISTED.match(line)) for name in match[1].split(", ")}
            yield from (f"{path}:{node.lineno} {node.name}: {name}" for name in sorted(listed - members_of(node)))


def uneven_lists(path: str, nodes: Nodes) -> Iterator[str]:
    """The docstrings with a list whose explanations begin in several columns."""
    for node in nodes:
        if isinstance(node, Documented):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n")[1:]:
                columns = {match.end() for line in paragraph.splitlines() if (match := LISTED.match(line))}
                if len(columns) > 1:
                    yield f"{path}:{node.lineno} {node.name}: {paragraph.split()[0]}"


def test_a_list_in_several_columns_is_noticed() -> None:
    code = 'class Box:\n    """A box.\n\n    size   its size\n    lid     its lid\n    """\n'

    assert [*uneven_lists("x.py", nodes_of(code))] == ["x.py:1 Box: size"]


@pytest.mark.parametrize(
    "code",
    [
        'class Box:\n    """A box.\n\n    size    its size\n    lid     its lid\n    """\n\n    size: int\n',
        'def fill(box):\n    """Fill a box.\n\n    box    the box\n    lid    its lid\n    """\n',
    ],
)
def test_a_listed_member_that_does_not_exist_is_noticed(code: str) -> None:
    [absent] = absent_members("x.py", nodes_of(code))

    assert absent.endswith(": lid")


RAISED = re.compile(r"\braises? ((?:`[\w.]+`(?:, | or | and )?)+)", re.IGNORECASE)
"""What a docstring says that a function raises."""


def raised_names(text: str) -> Iterator[str]:
    """The last parts of the names of the exceptions and problems that a module says it raises."""
    for match in RAISED.finditer(text):
        yield from (name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", match[1]))


CITED_CLASS = re.compile(r"`_?([A-Z][a-z]\w+)`")
"""A class that a docstring or a comment cites."""


def names_of_code(nodes: Nodes) -> Iterator[str]:
    """The names of a module, and its strings: the code of a problem is one."""
    for node in nodes:
        match node:
            case ast.ClassDef(name=name) | ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.Constant(value=str(text)):
                yield text
            case _:
                pass


def orphans(path: str, nodes: Nodes) -> Iterator[str]:
    """The strings that document nothing: neither a module, a class or a function, nor the assignment right above."""
    for node in nodes:
        body: object = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, statement in pairwise(cast("list[ast.stmt]", body)):
            match statement:
                case ast.Expr(value=ast.Constant(value=str())):
                    if not (
                        isinstance(before, ast.Assign | ast.AnnAssign)
                        and statement.lineno == (before.end_lineno or 0) + 1
                    ):
                        yield f"{path}:{statement.lineno}"
                case _:
                    pass


@pytest.mark.parametrize("between", ["\n", "import os\n"])
def test_a_docstring_that_documents_nothing_is_noticed(between: str) -> None:
    assert [*orphans("x.py", nodes_of(f'SIZE = 1\n{between}"""The size."""\n'))] == ["x.py:3"]


def test_files_that_the_code_cites_exist() -> None:
    cited = [
        (path, line, match[1])
        for path in MODULES
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in CITED_FILE.finditer(text)
    ]

    assert len(cited) > 20
    assert [
        f"{path.relative_to(ROOT)}:{line} cites {file}"
        for path, line, file in cited
        if not any((start / file).is_file() for start in CITED_FROM)
    ] == []


DEPENDENT_BEGINNING = re.compile(r"(?:The same\b|(?:Those|Its|Their|Of|It|They|These)\b(?! is called)|What came of\b)")
"""The beginning of a docstring whose noun stands elsewhere."""


def dependent_docstrings(path: str, nodes: Nodes) -> Iterator[str]:
    """The docstrings, also those of constants and fields, that begin with a word that points outside."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = node.value.value.lstrip()
            if DEPENDENT_BEGINNING.match(text):
                yield f"{path}:{node.lineno} {text.splitlines()[0][:60]}"


INVERTED = re.compile(r"(?:^|[.!?:] )(?:Who|Of) [a-z][\w'-]*|\b[Ss]o many\b")
"""The beginning of a sentence with its object, or with "who" for a person; and a number that only a parameter says."""


def inverted_sentences(path: str, nodes: Nodes) -> Iterator[str]:
    """The sentences of docstrings whose words are not in ordinary order."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = " ".join(node.value.value.split())
            yield from (f"{path}:{node.lineno} {match[0]}" for match in INVERTED.finditer(text))


ROLELESS = re.compile(r"\b(?:whoever|(?:any|every|no|some)body|(?:any|every|some)one)\b", re.IGNORECASE)
"""A word for a person whose role has a name."""


def roleless_docstrings(path: str, nodes: Nodes) -> Iterator[str]:
    """The docstrings that name a person by no role."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from (f"{path}:{node.lineno} {word}" for word in ROLELESS.findall(node.value.value))


CHECKS_OF_ALL = (absent_members, uneven_lists, inverted_sentences)
CHECKS_OF_PACKAGES = (orphans, dependent_docstrings, roleless_docstrings)


class Reading(NamedTuple):
    """What one reading of all modules gives: to parse them takes most of the time.

    findings    by check
    raised      the errors that docstrings of packages name, with the modules
    classes     the classes that docstrings and comments of packages cite, with the modules
    names       the names in the code of packages
    """

    findings: dict[Check, list[str]]
    raised: list[tuple[str, str]]
    classes: list[tuple[str, str]]
    names: set[str]


@pytest.fixture(scope="module")
def reading() -> Reading:
    reading = Reading({check: [] for check in (*CHECKS_OF_ALL, *CHECKS_OF_PACKAGES)}, [], [], {*dir(builtins)})
    for path in MODULES:
        name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        nodes = nodes_of(text)
        in_packages = path.is_relative_to(ROOT / "packages")
        for check in (*CHECKS_OF_ALL, *(CHECKS_OF_PACKAGES if in_packages else ())):
            reading.findings[check].extend(check(name, nodes))
        if in_packages:
            reading.raised.extend((name, error) for error in raised_names(text))
            reading.classes.extend((name, cited) for cited in CITED_CLASS.findall(text))
            reading.names.update(names_of_code(nodes))
    return reading


def test_all_modules_are_read() -> None:
    assert len(MODULES) > 1500


def test_a_docstring_lists_only_members_and_arguments_that_exist(reading: Reading) -> None:
    assert reading.findings[absent_members] == []


def test_the_explanations_of_a_list_begin_in_one_column(reading: Reading) -> None:
    assert reading.findings[uneven_lists] == []


def test_a_docstring_says_that_only_existing_errors_are_raised(reading: Reading) -> None:
    assert len(reading.raised) > 200
    assert [f"{path}: {name}" for path, name in reading.raised if name not in reading.names] == []


def test_every_class_that_a_docstring_cites_exists(reading: Reading) -> None:
    names = {name.removeprefix("_") for name in reading.names}

    assert len(reading.classes) > 100
    assert [f"{path}: {name}" for path, name in reading.classes if name not in names] == []


def test_every_docstring_documents_the_line_above_it(reading: Reading) -> None:
    assert reading.findings[orphans] == []


def test_a_docstring_has_a_noun_of_its_own(reading: Reading) -> None:
    assert reading.findings[dependent_docstrings] == []


def test_a_sentence_has_its_words_in_ordinary_order(reading: Reading) -> None:
    assert reading.findings[inverted_sentences] == []


def test_a_docstring_of_a_package_names_people_by_their_roles(reading: Reading) -> None:
    assert reading.findings[roleless_docstrings] == []


@pytest.mark.parametrize(
    "text", ["Who waits has no outcome.", "It is read. Of a call\nwith a key the answer is stored.", "So many come."]
)
def test_a_sentence_in_another_order_is_noticed(text: str) -> None:
    assert [*inverted_sentences("x.py", nodes_of(f'"""{text}"""\n'))]


@pytest.mark.parametrize("word", ["Whoever", "nobody", "everyone"])
def test_a_docstring_without_a_role_is_noticed(word: str) -> None:
    assert [*roleless_docstrings("x.py", nodes_of(f'"""{word} waits."""\n'))]


@pytest.mark.parametrize("text", ["Those of one address.", "The same for a form.", "It has no route."])
def test_a_docstring_that_points_outside_is_noticed(text: str) -> None:
    assert [*dependent_docstrings("x.py", nodes_of(f'PATH = "/"\n"""{text}"""\n'))]
