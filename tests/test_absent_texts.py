"""A text that a test asserts to be absent could be there: it stands in the packages, or also in the test itself."""

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MIN_LETTERS = 9
"""Shorter texts are words that stand somewhere by chance."""

WORDS_OF_OTHERS = {
    "access-control-allow-credentials": "a header of CORS, which no code of ours sends",
    "allow-same-origin": "a word of HTML",
    "allow-scripts": "a word of HTML",
    "compareQuantity": "a field of earlier versions of the platform's API",
    "events.test": "the address of the service of other tests",
    "structuredContent": "a field of MCP",
}
"""Texts that are right to be absent everywhere, and whose they are."""

SUFFIXES = {".py", ".html", ".js", ".css", ".sql", ".po", ".json", ".md", ".xml", ".txt", ".liquid", ".svg"}


def absent_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of each `assert "…" not in …`."""
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    filters = {
        id(part)
        for statement in asserts
        for node in ast.walk(statement)
        if isinstance(node, ast.comprehension)
        for condition in node.ifs
        for part in ast.walk(condition)
    }
    for node in (node for statement in asserts for node in ast.walk(statement) if id(node) not in filters):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn) and isinstance(node.left, ast.Constant):
            text = node.left.value
            text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
            if isinstance(text, str) and len(re.findall(r"[^\W\d_]", text)) >= MIN_LETTERS:
                yield node.lineno, text


def normal(text: str) -> str:
    """The text in one line, without marks of templates and elements, as tests read pages."""
    return " ".join(re.sub(r"<[^<>]*>|\{[{%].*?[}%]\}", " ", text, flags=re.DOTALL).split())


def written_text(path: Path) -> str:
    """The content of a file as it is and in one line; texts that stand in several lines in one piece."""
    content = path.read_text(encoding="utf-8", errors="replace")
    joined = re.sub(r"[\"']\s*\n\s*[brf]*[\"']", "", content)
    return "\n".join((content, normal(joined)))


def texts_of(content: str) -> list[tuple[int, str]]:
    """The same of a module. To parse those without a `not in` would take most of the time."""
    return [*absent_texts(ast.parse(content))] if "not in" in content else []


def vacuous(path: str, content: str, texts: list[tuple[int, str]], sources: str) -> Iterator[str]:
    for line, text in texts:
        negative = sum(text in other for _, other in texts)
        if text not in sources and text not in WORDS_OF_OTHERS and content.count(text) <= negative:
            yield f"{path}:{line} {text}"


@pytest.fixture(scope="module")
def sources() -> str:
    """All that the packages and the extensions can say."""
    folders = (*(ROOT / "packages").glob("*/src"), ROOT / "extensions")
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES]
    assert len(paths) > 700
    return "\n".join(map(written_text, paths))


def test_a_text_asserted_absent_could_be_there(sources: str) -> None:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    contents = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    texts = {path: texts_of(content) for path, content in contents.items()}

    assert sum(map(len, texts.values())) > 100
    findings = (vacuous(path, content, texts[path], sources) for path, content in contents.items())
    assert [*chain.from_iterable(findings)] == []


@pytest.mark.parametrize(
    "code",
    [
        'assert "No page says so" not in page',
        'assert all("No page says so" not in page for page in pages)',
        'assert b"No page says so" not in first\nassert "No page says so" not in second',
    ],
)
def test_a_text_that_stands_nowhere_is_noticed(code: str) -> None:
    assert {finding.partition(" ")[2] for finding in vacuous("x.py", code, texts_of(code), "")} == {"No page says so"}


@pytest.mark.parametrize(
    "code",
    [
        'send("No page says so")\nassert "No page says so" not in page',
        'assert [line for line in lines if "No page says so" not in line] == []',
        'assert "short" not in page',
    ],
)
def test_a_text_that_the_test_writes_or_leaves_out_itself_is_right(code: str) -> None:
    assert [*vacuous("x.py", code, texts_of(code), "")] == []


def test_a_text_of_a_template_is_read_as_pages_have_it(tmp_path: Path) -> None:
    template = tmp_path / "page.html"
    template.write_text("<p>One of\n  <b>{{ count }}</b> seats</p>", encoding="utf-8")

    assert "One of seats" in written_text(template)
