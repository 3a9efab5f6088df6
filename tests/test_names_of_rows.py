"""Names in SQL: each common table expression says which rows it has, and a new column is not named `state`."""

import re
from pathlib import Path

import pytest

from tests.programs.releases import releases, schema_of_release

ROOT = Path(__file__).parents[1]
SOURCES = [*(ROOT / "packages").glob("*/src/*")]

BARE_ROWS = {
    *(
        "again",
        "around",
        "before",
        "done",
        "each",
        "fair",
        "first",
        "free",
        "fresh",
        "gone",
        "how",
        "kept",
        "lap",
        "late",
        "left_over",
        "line",
    ),
    *(
        "made",
        "mine",
        "new",
        "next",
        "old",
        "other",
        "own",
        "page",
        "past",
        "place",
        "room",
        "taken",
        "those",
        "told",
        "walk",
        "wanted",
    ),
}
"""Words that do not say which rows a common table expression of SQL has."""


BARE_EXPRESSION = re.compile(
    rf"(?:\bwith(?: recursive)?|,|^)\s+({'|'.join(sorted(BARE_ROWS))})(?: \([\w, ]+\))? as (?:materialized )?\(",
    re.MULTILINE,
)


def bare_expressions(text: str) -> list[str]:
    """The common table expressions in a module, or in a file of SQL, that do not say which rows they have."""
    return BARE_EXPRESSION.findall(text)


def test_every_common_table_expression_says_which_rows_it_has() -> None:
    paths = [path for source in SOURCES for ending in ("py", "sql") for path in source.rglob(f"*.{ending}")]
    written = [path for path in paths if path.name != "schema.sql" and path.parent.name != "migrations"]

    assert len(written) > 500
    assert [
        f"{path.name} {name}" for path in written for name in bare_expressions(path.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize("text", ["with gone as (", "with recursive line (id) as (", "x),\n    own as materialized ("])
def test_a_common_table_expression_that_does_not_say_which_rows_it_has_is_noticed(text: str) -> None:
    assert len(bare_expressions(text)) == 1
    assert bare_expressions("with old_row as (select first from page)") == []


def tables_with_state(schema: str) -> set[str]:
    """The tables of a schema that have a column named `state`."""
    tables = re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", schema, re.MULTILINE | re.DOTALL)
    return {name for name, columns in tables if re.search(r"^    state ", columns, re.MULTILINE)}


def test_the_columns_named_state_are_the_released_ones_that_the_page_about_style_lists() -> None:
    schemas = [path.read_text(encoding="utf-8") for source in SOURCES for path in source.rglob("schema/schema.sql")]
    tables = tables_with_state("\n".join(schemas))
    page = (ROOT / "docs" / "style.md").read_text(encoding="utf-8")
    [listed] = re.findall(r"The columns `state` of (.+?) keep", page, re.DOTALL)

    assert len(schemas) == 2
    assert tables == set(re.findall(r"`(\w+)`", listed))
    assert tables == tables_with_state(schema_of_release(releases()[0], "events"))
