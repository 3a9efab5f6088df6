"""Addresses of the web are found in texts of strangers as mail programs find them, and replaced."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.texts.web_addresses import LINK_BREAK, has_link, link_finder, replace_links


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/a?b=c",
        "evil.com",
        "evil.app",
        "evil.dev/x",
        "www.evil.xyz",
        "evil.xn--p1ai",
        "evil.рф",
        "evil。com",
        "evil\uff0eapp/login",
        "hxxp://evil.com/x",
        "1.2.3.4/login",
        "//evil.app/x",
        "somebody@evil.app",
    ],
)
def test_an_address_that_mail_programs_show_as_a_link_is_replaced(address: str) -> None:
    assert has_link(f"Sign in at {address} now")
    assert replace_links(f"Sign in at {address} now", "(…)") == "Sign in at (…) now"


@pytest.mark.parametrize("text", ["Node.js night", "St. Mary", "7.30 pm", "v2.0/beta", "e.g. this", "Mr.Smith", "…"])
def test_words_with_a_dot_and_no_known_domain_are_no_address(text: str) -> None:
    assert not has_link(text)
    assert replace_links(text, "(…)") == text


def test_several_addresses_are_replaced_each_by_itself() -> None:
    assert replace_links("evil.app, then evil.dev/x.", "(…)") == "(…), then (…)."


@pytest.mark.parametrize(
    "text",
    [
        "ASP.NET Core meetup",
        "Anna Müller, M.Sc.",
        "Dipl.Ing. Hans Huber",
        "Dr.med. Weber",
        "X.Li",
        "P.Ng",
        "Mr.Li's course",
        "Co.KG Haus",
        "Goethestr.Berlin",
        "Socket.IO Conf",
        "EVIL.COM",
    ],
)
def test_a_doubtful_address_gets_an_invisible_break_and_keeps_its_text(text: str) -> None:
    broken = replace_links(text, "(…)")

    assert not has_link(text)
    assert broken.replace(LINK_BREAK, "") == text
    assert broken != text
    assert not link_finder().match(broken)  # as mail programs look for links


ODD_NEIGHBOURS = [
    *("see:", "Pay:", ":", "|", "/", "a/", "@", "_", "-", "--", "`", "x|", ".", "..", "\u2026", "\u65e5\u672c", "1/"),
    *("file://", "smb://", "x-app://", "https:", "https:/", "https:///", "http:\\\\", "a@b@", "\u200b", "\ufe0f"),
]
"""What mail programs see no part of a host in, and what the library that finds links does."""


@pytest.mark.parametrize("before", ODD_NEIGHBOURS)
@pytest.mark.parametrize("after", ["", "/login", "_x", "-", "|", "\u65e5\u672c", "/a_b-c?d", ":8080/x", "\ufe0f", "`"])
def test_an_address_is_found_beside_any_character(before: str, after: str) -> None:
    text = f"Sign in {before}evil.com{after} now"

    assert has_link(text)
    assert "evil" not in replace_links(text, "(…)")


@given(before=st.text(string.punctuation + " \u200b\ufe0f\u65e5\u00e9", max_size=4), after=st.text(string.punctuation))
def test_an_address_is_found_among_any_signs(before: str, after: str) -> None:
    text = f"Sign in {before}evil.com{after}"

    assert has_link(text)
    assert "evil" not in replace_links(text, "(…)")


@pytest.mark.parametrize(
    "address",
    [
        "evil.\uff43\uff4f\uff4d",
        "\uff45\uff56\uff49\uff4c.com/x",
        "evil.\u24d2\u24de\u24dc",
        "\U0001d41e\U0001d42f\U0001d422\U0001d425.\U0001d41c\U0001d428\U0001d426",
        "evil\u2024com",
        "evil.c\u200dom",
        "ev\u034fil.com",
        "evil.\ufe0fcom",
        "evil.\U000e0041com",
        "\uff48\uff54\uff54\uff50://evil.test/x",
        "http://[::1]/x",
        "https:///evil.test",
    ],
)
def test_an_address_is_found_however_its_letters_are_written(address: str) -> None:
    assert has_link(f"Sign in at {address} now")
    assert replace_links(f"Sign in at {address} now", "(…)") == "Sign in at (…) now"


@pytest.mark.parametrize(
    "text",
    [
        "Concert: 7.30 pm/8.30 pm",
        "AC/DC & co.",
        "Intro (v1.2): C#/F#",
        "10:30-11:00, Str. 5/6",
        "A/B: yes/no.",
        "#7_b.c",
    ],
)
def test_signs_beside_dots_make_no_address(text: str) -> None:
    assert not has_link(text)
    assert replace_links(text, "(…)") == text


def test_a_text_whose_addresses_were_replaced_is_not_changed_again() -> None:
    once = replace_links("ASP.NET, see:evil.com and M\u00f6bel.House", "(…)")

    assert replace_links(once, "(…)") == once
    assert once.replace(LINK_BREAK, "") == "ASP.NET, see:(…) and M\u00f6bel.House"
