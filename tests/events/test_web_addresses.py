"""Addresses of the web are found in texts of strangers as mail programs find them, and replaced."""

import pytest

from holdfast.events.web_addresses import LINK_BREAK, LINKS, has_link, replace_links


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
def test_what_mail_programs_show_as_a_link_is_replaced(address: str) -> None:
    assert has_link(f"Sign in at {address} now")
    assert replace_links(f"Sign in at {address} now", "(…)") == "Sign in at (…) now"


@pytest.mark.parametrize("text", ["Node.js night", "St. Mary", "7.30 pm", "v2.0/beta", "e.g. this", "Mr.Smith", "…"])
def test_a_dot_alone_makes_no_address(text: str) -> None:
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
def test_in_doubt_the_link_is_broken_and_not_the_text(text: str) -> None:
    broken = replace_links(text, "(…)")

    assert not has_link(text)
    assert broken.replace(LINK_BREAK, "") == text
    assert broken != text
    assert not LINKS.match(broken)  # as mail programs look for links
