"""Cells of CSV files: no program runs them, and an import takes them back exactly as they were."""

import csv
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.kit.contract.csv_cells import as_csv, neutral, original

TEXTS = st.text(st.sampled_from("=+-@\uff1d\uff0b;|,\t\r\n'\" ax1") | st.characters(codec="utf-8"), max_size=30)
FORMULA = re.compile(r"""["' ]*[=+@\uff1d\uff0b\uff0d\uff20-]""")


@pytest.mark.parametrize("separator", [";", "\t", "|", "\n", "\r\n", '; "', "; '"])
def test_a_formula_after_a_character_at_which_a_program_may_divide_is_marked(separator: str) -> None:
    """Before, `x;=cmd|...` was written as it was, and a program that divides at semicolons ran it."""
    assert neutral(f"x{separator}=cmd()") != f"x{separator}=cmd()"


@pytest.mark.parametrize("text", ["a;b", "a - b", "x = y", "1-2", "a@example.com", "a; b|c", "line\r\nline"])
def test_a_text_without_a_formula_stays_as_it_is(text: str) -> None:
    assert neutral(text) == text


@given(TEXTS)
@example("x;=cmd|' /C calc'!A0")
@example("'\t'=;'=")
def test_every_text_comes_back_exactly(text: str) -> None:
    [[cell]] = csv.reader(io.StringIO(as_csv([[text]]), newline="")) if text else [[""]]

    assert original(cell) == text


@given(TEXTS)
@example(" =cmd()")
@example('"=cmd()')
def test_no_part_of_a_cell_is_a_formula_wherever_a_program_divides_it(text: str) -> None:
    parts = re.split(r"[;|\t\r\n]", str(neutral(text)))

    assert not any(FORMULA.match(part) and not part.startswith("'") for part in parts)
