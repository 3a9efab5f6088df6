# ruff: noqa: RUF001
"""Texts on one line: invisible characters are removed, and joiners of letters stay."""

import pytest

from holdfast.events.texts.rendered_text import one_line
from holdfast.kit.mail.message import header_text, joined_lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Sommer\u00adfest", "Sommerfest"),
        ("Sommer\u200bfest", "Sommerfest"),
        ("Sommer\u2060fest", "Sommerfest"),
        ("Sommer\ufefffest", "Sommerfest"),
        ("Auf\u200clage", "Auflage"),
        ("Auf\u200dlage", "Auflage"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("👩\u200d🚀 talks", "👩\u200d🚀 talks"),
        ("ASP.\u200cNET", "ASP.\u200cNET"),
        ("a\r\nb\tc\u2028d\u00a0 e", "a b c d e"),
    ],
)
def test_invisible_marks_leave_no_space_and_joiners_of_scripts_and_emoji_stay(text: str, line: str) -> None:
    assert one_line(text) == line
    assert header_text(text).replace("\u00a0", "").replace("  ", " ") == line


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("Studio 5\nHauptstr. 1\n10115 Berlin", "Studio 5, Hauptstr. 1, 10115 Berlin"),
        ("Studio 5,\r\n\r\n Hauptstr. 1,\n10115 Berlin\n", "Studio 5, Hauptstr. 1, 10115 Berlin"),
        ("Hauptstr. 1", "Hauptstr. 1"),
        ("Hauptstr. 1,", "Hauptstr. 1,"),
        ("\u200b\n", ""),
    ],
)
def test_an_address_on_one_line_has_commas_between_its_lines(address: str, line: str) -> None:
    assert joined_lines(address) == line
