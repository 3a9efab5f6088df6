"""A message is an English text for programs, and says the same to people in their language."""

import ast
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.kit.contract.messages import FieldName, GroupedNumber, message, message_text
from holdfast.kit.contract.problems import Problem, ProblemType, invalid
from holdfast.kit.pages.language import ENGLISH, GERMAN, Language, translations
from holdfast.kit.pages.layout import KIT

ROOT = Path(__file__).parents[3]


def on_page(message: str, language: Language = GERMAN, labels: Mapping[str, str] | None = None) -> str:
    translate = translations(language.code, (KIT,)).gettext
    return message_text(message, translate, labels or {}, language.number)


def test_a_message_equals_its_english_text() -> None:
    example = message("must be at most %(most)s, not %(value)s", most=3, value="5 %")

    assert example == "must be at most 3, not 5 %"
    assert on_page(example) == "darf höchstens 3 sein, nicht 5 %"


def test_messages_within_messages_are_translated_too() -> None:
    example = message("must be %(expected)s, not %(value)s", expected=message("an integer"), value=message("an array"))

    assert on_page(example) == "muss eine ganze Zahl sein, nicht eine Liste"


@pytest.mark.parametrize(
    ("language", "expected"), [(ENGLISH, "needs “Unknown field”"), (GERMAN, "braucht „unbekanntes Feld“")]
)
def test_people_read_the_label_of_a_field_and_programs_its_name(language: Language, expected: str) -> None:
    example = message("needs %(field)s", field=FieldName("starts_at"))

    assert example == "needs starts_at"
    labels = {"starts_at": "unknown field" if language == GERMAN else "Unknown field"}
    assert on_page(example, language, labels) == expected
    assert on_page(example, ENGLISH) == "needs starts_at"


def test_a_number_of_things_is_written_as_people_write_it() -> None:
    example = message("needs %(field)s", field=GroupedNumber(12_000))

    assert (example, on_page(example)) == ("needs 12,000", "braucht 12.000")


def test_a_message_without_values_may_have_a_percent_sign() -> None:
    assert (message("100% of it"), on_page(message("100% of it"))) == ("100% of it", "100% of it")


def test_a_plain_text_is_shown_unchanged() -> None:
    assert on_page("is required %s") == "is required %s"


FULL = ProblemType("full", 422, "It is full.", "Wait.", "place")


@pytest.mark.parametrize(
    "problem",
    [
        invalid({"place": [message("is required")]}),
        FULL(),
        FULL("No room."),
        FULL(message("needs %(field)s", field="room")),
    ],
)
def test_the_body_of_a_problem_is_plain_text(problem: Problem) -> None:
    [text] = problem.body()["errors"]["place"]

    assert type(text) is str
    assert type(problem.message) is str
    assert type(problem.body()["error"]) is str
    assert json.loads(json.dumps(problem.body())) == problem.body()
    assert pickle.loads(pickle.dumps(problem.body())) == problem.body()
    assert problem.errors["place"] == [text]


def test_a_message_in_the_code_gets_a_value_for_each_of_its_placeholders_and_no_other() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted((ROOT / "packages").glob("*/src/**/*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "message"
        for text in call.args[:1]
        if isinstance(text, ast.Constant) and None not in (names := {keyword.arg for keyword in call.keywords})
        if set(re.findall(r"%\((\w+)\)s", str(text.value))) != names
    ]

    assert wrong == []
