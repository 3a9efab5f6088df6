"""Cells of CSV files: no program runs them, and an import takes them back exactly as they were."""

import csv
import io
import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.kit.contract.csv_cells import CsvFormat, as_csv, neutral, original, with_separator

TEXTS = st.text(st.sampled_from("=+-@\uff1d\uff0b;|,\t\r\n'\" ax1") | st.characters(codec="utf-8"), max_size=30)
FORMULA = re.compile(r"""["' ]*[=+@\uff1d\uff0b\uff0d\uff20-]""")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "\n", "\r\n", '; "', "; '", ", "])
def test_a_formula_after_a_character_at_which_a_program_may_divide_is_marked(separator: str) -> None:
    """Before, `x;=cmd|...` was written as it was, and a program that divides at semicolons ran it."""
    assert neutral(f"x{separator}=cmd()") != f"x{separator}=cmd()"


@pytest.mark.parametrize("text", ["a;b", "a - b", "x = y", "1-2", "a@example.com", "a; b|c", "line\r\nline"])
def test_a_text_without_a_formula_stays_as_it_is(text: str) -> None:
    assert neutral(text) == text


FORMATS = [CsvFormat(",", "."), CsvFormat(";", ",")]
"""The formats of English and of German files."""


@pytest.mark.parametrize("format", FORMATS)
@given(text=TEXTS)
@example(text="x;=cmd|' /C calc'!A0")
@example(text="x,=cmd()")
@example(text="'\t'=;'=")
def test_every_text_in_a_csv_cell_is_read_back_exactly(format: CsvFormat, text: str) -> None:
    rows = [*csv.reader(io.StringIO(as_csv([[text, 7]], format), newline=""), delimiter=format.separator)]

    assert [[original(cell), number] for cell, number in rows] == [[text, "7"]]


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=4))
def test_a_file_with_another_separator_has_the_same_cells(rows: list[list[str]]) -> None:
    text = with_separator(as_csv(rows), ";")

    assert text == as_csv(rows, FORMATS[1])


@pytest.mark.parametrize(
    ("format", "line"), [(FORMATS[0], '12.05,-0.50,"a, b",7\r\n'), (FORMATS[1], "12,05;-0,50;a, b;7\r\n")]
)
def test_amounts_have_the_decimal_sign_of_the_format(format: CsvFormat, line: str) -> None:
    assert as_csv([[Decimal("12.05"), Decimal("-0.50"), "a, b", 7]], format) == line


@given(TEXTS)
@example(" =cmd()")
@example('"=cmd()')
def test_no_part_of_a_cell_is_a_formula_for_any_separator(text: str) -> None:
    parts = re.split(r"[,;|\t\r\n]", str(neutral(text)))

    assert not any(FORMULA.match(part) and not part.startswith("'") for part in parts)
