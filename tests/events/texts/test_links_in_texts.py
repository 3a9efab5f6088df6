# ruff: noqa: RUF001
"""Links in the texts of events are the addresses that their authors meant, and nothing that was written is lost."""

from html import unescape
from urllib.parse import unquote

import nh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.texts.markdown import render


def links_of(html: str) -> list[str]:
    """The targets of the links, as they are read."""
    return [unquote(unescape(part.partition('"')[0])) for part in html.split('<a href="')[1:]]


def words_of(html: str) -> str:
    return unescape(nh3.clean(html, tags=set())).strip()


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("„https://example.com/x“", "https://example.com/x"),
        ("“https://example.com/x”", "https://example.com/x"),
        ("»https://example.com/x«", "https://example.com/x"),
        ("«https://example.com/x»", "https://example.com/x"),
        ("‘https://example.com/x’", "https://example.com/x"),
        ("‹https://example.com/x›, then", "https://example.com/x"),
        ("「https://example.com/x」", "https://example.com/x"),
        ("（https://example.com/x）", "https://example.com/x"),
        ("https://example.com/参加。次", "https://example.com/参加"),
        ("https://example.com/x、次", "https://example.com/x"),
        ("https://example.com/x，次", "https://example.com/x"),
        ("https://example.com/x！", "https://example.com/x"),
        ("https://example.com/x…", "https://example.com/x"),
        ("https://example.com/x... and", "https://example.com/x"),
        ("https://example.com/x؟", "https://example.com/x"),
        ("https://example.com/x۔", "https://example.com/x"),
        ("https://example.com/x।", "https://example.com/x"),
        ("https://example.com/x –", "https://example.com/x"),
        ("https://example.com/x—", "https://example.com/x"),
        ("*https://example.com/x*", "https://example.com/x"),
        ("**https://example.com/x**: now", "https://example.com/x"),
        ("**https://example.com/x**,now", "https://example.com/x"),
        ("_https://example.com/x_", "https://example.com/x"),
        ("__https://example.com/x__", "https://example.com/x"),
        ("_see https://example.com/x_", "https://example.com/x"),
        ("https://youtu.be/abcdefghij_ is it", "https://youtu.be/abcdefghij_"),
        ("&quot;https://example.com/x&quot;", "https://example.com/x"),
        ("&lt;https://example.com/x&gt;", "https://example.com/x"),
        ("&#39;https://example.com/x&#39;", "https://example.com/x"),
        ("https://example.com/x&nbsp;then", "https://example.com/x"),
        ("https://example.com/?a=1&amp;b=2", "https://example.com/?a=1&b=2"),
        ("https://example.com/?a=1&copy=2", "https://example.com/?a=1&copy=2"),
        ("https://example.com/a\\_b", "https://example.com/a_b"),
        ("(https://example.com/x)", "https://example.com/x"),
        ("(https://example.com/x).", "https://example.com/x"),
        ("https://en.wikipedia.org/wiki/Mercury_(planet)", "https://en.wikipedia.org/wiki/Mercury_(planet)"),
        ("(https://en.wikipedia.org/wiki/Mercury_(planet))", "https://en.wikipedia.org/wiki/Mercury_(planet)"),
        ("https://ja.wikipedia.org/wiki/レオナルド・ダ・ヴィンチ。", "https://ja.wikipedia.org/wiki/レオナルド・ダ・ヴィンチ"),
        ("https://en.wikipedia.org/wiki/Schindler’s_List’", "https://en.wikipedia.org/wiki/Schindler’s_List"),
        ("https://en.wikipedia.org/wiki/Michelson–Morley", "https://en.wikipedia.org/wiki/Michelson–Morley"),
        ("https://fa.wikipedia.org/wiki/می\u200cخواهم", "https://fa.wikipedia.org/wiki/می\u200cخواهم"),
        ("https://example.com/x\u200b次", "https://example.com/x"),
        ("\u200fhttps://example.com/x\u200f.", "https://example.com/x"),
        ("\u2068https://example.com/x\u2069", "https://example.com/x"),
        ("https://example.com/x\u200d", "https://example.com/x"),
        ("https://example.com/x\ufeff", "https://example.com/x"),
        ("https://example.com/long\u00adword", "https://example.com/longword"),
        ("https://münchen.de/straße.", "https://xn--mnchen-3ya.de/straße"),
        ("https://münchen.de。", "https://xn--mnchen-3ya.de"),
        ("https://example.comをご覧", "https://example.com"),
        ("参加はhttps://example.com/xまで。", "https://example.com/xまで"),
        ("„ann@example.com“", "mailto:ann@example.com"),
        ("ann@example.com。次", "mailto:ann@example.com"),
        ("[x](www.example.com/y)", "https://www.example.com/y"),
        ("[x](example.com)", "https://example.com"),
        ("[x](ann@example.com)", "mailto:ann@example.com"),
    ],
)  # fmt: skip
def test_a_link_in_a_text_ends_where_its_address_ends(source: str, address: str) -> None:
    assert links_of(render(source).html) == [address]


GLUE = ["“", "”", "»", "«", "’", "）", "」", "。", "、", "！", "…", "؟", ".", ",", ";", ":", "!", "?", ")", "]",
        "**", "&quot;", "\u200b", "\u200e", "\u200f", "\u2069", "\ufeff", "\u2060", "\u00ad", "\u200d"]  # fmt: skip
PARTS = st.text("abcxyz019-_~äß参加می", min_size=1, max_size=8).filter(lambda part: part[-1] not in "-_~")


@given(
    st.sampled_from(["example.com", "münchen.de", "a.b.example"]),
    st.lists(st.one_of(PARTS, PARTS.map(lambda part: f"{part}_({part})")), max_size=3),
    st.lists(st.sampled_from(GLUE), max_size=4),
    st.sampled_from(["", " then", "\nthen"]),
)
def test_a_link_excludes_the_punctuation_after_its_address_and_the_text_keeps_it(
    host: str, parts: list[str], glue: list[str], after: str
) -> None:
    address = f"https://{host}/{'/'.join(parts)}"
    html = render(address + "".join(glue) + after).html

    [link] = links_of(html)
    assert link == address.replace("münchen", "xn--mnchen-3ya")
    marks = [unescape(text) for text in glue if text != "**"]
    assert all(text in words_of(html) for text in (address, *marks, after.strip()))


@pytest.mark.parametrize(
    "address",
    [
        "tel:+4930123456",
        "sms:+4930123456",
        "geo:52.52,13.40",
        "webcal://example.com/events.ics",
        "mailto:ann@example.com?subject=Hi",
    ],
)
def test_an_address_that_phones_and_calendars_open_is_a_link(address: str) -> None:
    assert links_of(render(f"[words]({address})").html) == [address]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("[plans](ftp://example.com/plans)", "plans (ftp://example.com/plans)"),
        ("[**plans**](ftp://example.com/plans) here", "plans (ftp://example.com/plans) here"),
        ("[chat](xmpp:room@example.com)", "chat (xmpp:room@example.com)"),
        ("[us](signal:+4930123456)", "us (signal:+4930123456)"),
        ("[ftp://example.com](ftp://example.com)", "ftp://example.com"),
        ("<ftp://example.com/x>", "ftp://example.com/x"),
        ("[](ftp://example.com/x)", "ftp://example.com/x"),
        ("![map](ftp://example.com/map.png)", "map (ftp://example.com/map.png)"),
        ("ftp://example.com/x.", "ftp://example.com/x."),
        ("tel:+4930123456", "tel:+4930123456"),
        ("webcal://example.com/x.ics", "webcal://example.com/x.ics"),
        ("[c]\n\n[c]: xmpp:room@example.com", "c (xmpp:room@example.com)"),
    ],
)
def test_an_address_with_a_forbidden_scheme_is_shown_as_text(source: str, words: str) -> None:
    html = render(source).html

    assert words_of(html) == words
    assert "<a" not in html


@given(
    st.sampled_from(
        ["ftp", "xmpp", "irc", "matrix", "signal", "tg", "skype", "facetime", "tel", "geo", "sms", "webcal"]
    ),
    st.from_regex(r"[a-z0-9+@./]{1,20}", fullmatch=True),
)
def test_the_address_of_a_link_is_never_lost(scheme: str, rest: str) -> None:
    html = render(f"[words]({scheme}:{rest})").html

    assert links_of(html) == [f"{scheme}:{rest}"] or f"{scheme}:{rest}" in words_of(html)
    assert "words" in words_of(html)


def test_a_line_break_in_a_text_is_a_line_break_in_html() -> None:
    html = render("Studio 5\nHauptstr. 1  \n10115 Berlin\n\n* a\n  b\n\n> c\n> d").html

    assert "<p>Studio 5<br>\nHauptstr. 1<br>\n10115 Berlin</p>" in html
    assert "a<br>\nb" in html
    assert "c<br>\nd" in html


def test_a_summary_has_the_lines_of_a_text_on_one_line() -> None:
    assert render("Studio 5\nHauptstr. 1\n10115 Berlin").summary == "Studio 5 Hauptstr. 1 10115 Berlin"
