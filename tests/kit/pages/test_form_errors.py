"""Errors in a form say what to enter instead; programs read the messages of the API."""

import re
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

import holdfast
from holdfast.kit.contract.command import Command, check
from holdfast.kit.contract.messages import message, message_text
from holdfast.kit.contract.problems import Problem
from holdfast.kit.pages.forms import FormRefusal, form_errors, try_form
from holdfast.kit.pages.language import ENGLISH, GERMAN, Language, translations
from holdfast.kit.pages.layout import KIT, PREDICATES, Frame

PLACES = {"places": message("Enter a number of seats, such as 30.")}


class Order(Command):
    places: Annotated[int, Meta(ge=1, le=5_000)]
    title: Annotated[str, Meta(min_length=1, max_length=2_000)] = "Title"
    is_open: bool = True


def on_page(messages: list[str], language: Language = ENGLISH) -> str:
    translate = translations(language.code, (KIT,)).gettext
    return "; ".join(message_text(error, translate, {}, language.number) for error in messages)


def refusal_of(**values: object) -> Problem:
    with pytest.raises(Problem) as caught:
        check(Order, values)
    return caught.value


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ("abc", "Enter a number of seats, such as 30."),
        (None, "Enter a number of seats, such as 30."),
        (0, "Enter a number of seats, such as 30. It must be at least 1."),
        (9_999, "Enter a number of seats, such as 30. It must be at most 5,000."),
    ],
)
def test_a_field_says_what_to_enter_and_gives_an_example(places: object, sentence: str) -> None:
    assert on_page(form_errors(refusal_of(places=places).errors, PLACES)["places"]) == sentence


@pytest.mark.parametrize(
    ("values", "english", "german"),
    [
        ({"places": "abc"}, "Enter a whole number, such as 10.", "Geben Sie eine ganze Zahl ein, zum Beispiel 10."),
        ({}, "Fill this in.", "Füllen Sie dieses Feld aus."),
        ({"places": 0}, "Enter a number of at least 1.", "Geben Sie eine Zahl ein, die mindestens 1 ist."),
        (
            {"places": 5_001},
            "Enter a number of at most 5,000.",
            "Geben Sie eine Zahl ein, die höchstens 5.000 ist.",
        ),
        ({"places": 1, "title": ""}, "Fill this in.", "Füllen Sie dieses Feld aus."),
        (
            {"places": 1, "title": "x" * 2_001},
            "Enter at most 2,000 characters. This has 2,001.",
            "Geben Sie höchstens 2.000 Zeichen ein. Das sind 2.001.",
        ),
        ({"places": 1, "is_open": "perhaps"}, "Choose yes or no.", "Wählen Sie ja oder nein."),
    ],
)
def test_without_an_instruction_the_kind_of_the_value_gives_the_example(
    values: dict[str, object], english: str, german: str
) -> None:
    [messages] = form_errors(refusal_of(**values).errors).values()

    assert on_page(messages) == english
    assert on_page(messages, GERMAN) == german


def test_a_specific_message_is_not_replaced_by_an_instruction() -> None:
    error = message("is already taken")

    assert form_errors({"slug": [error]}, {"slug": message("Enter a text.")}) == {"slug": [error]}


def test_programs_still_read_the_messages_of_the_api() -> None:
    assert refusal_of(places="abc").extra["errors"] == {"places": ['must be an integer, not "abc"']}


async def test_a_refused_form_says_what_to_enter() -> None:
    async def work() -> Order:
        return check(Order, {"places": "abc"})

    refusal = await try_form(work, instructions=PLACES)

    assert isinstance(refusal, FormRefusal)
    assert refusal.errors == {"places": ["Enter a number of seats, such as 30."]}


FIELD_TEMPLATE = '{% from "fields.html" import field with context %}{{ field("at", _("From"), {}, errors) }}'


@pytest.mark.parametrize(
    ("error", "english", "german"),
    [
        (message("is required"), "“From” is required.", "„From“ muss ausgefüllt werden."),
        (message("must not be empty"), "“From” must not be empty.", "„From“ darf nicht leer sein."),
        (message("no organizer has this id"), "No organizer has this id.", None),
        (message("Fill this in."), "Fill this in.", "Füllen Sie dieses Feld aus."),
    ],
)
def test_an_error_beside_a_field_is_a_sentence_with_a_subject(
    tmp_path: Path, error: str, english: str, german: str | None
) -> None:
    (tmp_path / "form.html").write_text(FIELD_TEMPLATE, encoding="utf-8")
    frame = Frame("Tests", tmp_path)

    for language, sentence in ((ENGLISH, english), (GERMAN, german)):
        page = frame.render("form.html", language=language, errors={"at": [error]})
        if sentence:
            assert f'<p class="error" id="at-note">{sentence}</p>' in page


VERB = re.compile(r"(?:[a-z]+s|must|cannot|took|broke) ")
NOUNS = {"bytes", "endpoints", "events"}


def test_every_message_that_says_something_of_its_field_gets_it_as_subject() -> None:
    words = {
        text.partition(" ")[0]
        for path in Path(*holdfast.__path__).rglob("*.py")
        for text in re.findall(r'message\(\s*"([^"]*)"', path.read_text("utf-8"))
        if VERB.match(text)
    }

    assert words - NOUNS == PREDICATES
