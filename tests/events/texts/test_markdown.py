"""Texts of events become HTML that does no harm, and none takes long."""

import contextlib
import time
from pathlib import Path

import nh3
import pytest

from holdfast.events.texts.markdown import MAX_CPU_SECONDS, MAX_HTML_CHARACTERS, TAGS, TextLimitExceeded, render
from holdfast.events.texts.rendered_text import RenderedText, one_line, plain, without_links

DOCUMENTS = Path(__file__).parents[3] / "docs" / "events"

ENOUGH_SECONDS = 1_000.0
"""More seconds than the steps of any text take."""


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("Bring a **pencil**.", "<p>Bring a <strong>pencil</strong>.</p>"),
        ("* one\n* two", "<ul>\n<li>one</li>\n<li>two</li>\n</ul>"),
        ("3. three", '<ol start="3">\n<li>three</li>\n</ol>'),
        ("`code`", "<p><code>code</code></p>"),
        ("> said", "<blockquote>\n<p>said</p>\n</blockquote>"),
    ],
)
def test_markdown_is_rendered_as_its_html(source: str, html: str) -> None:
    assert render(source).html.strip() == html


@pytest.mark.parametrize(
    ("source", "address", "words"),
    [
        ("See https://example.com/a_b_c?d=e&f.", "https://example.com/a_b_c?d=e&amp;f", "https://example.com/a_b_c?d=e&amp;f"),
        ("See [the studio](http://example.com).", "http://example.com", "the studio"),
        ("Write to ann@example.com.", "mailto:ann@example.com", "ann@example.com"),
        ("[](https://example.com)", "https://example.com", "https://example.com"),
        ("![A *map*](https://example.com/map.png)", "https://example.com/map.png", "A map"),
        ("![](https://example.com/map.png)", "https://example.com/map.png", "https://example.com/map.png"),
        ("[![](https://example.com/map.png)](https://example.com)", "https://example.com", "https://example.com/map.png"),
    ],
)  # fmt: skip
def test_addresses_and_images_become_links_with_words(source: str, address: str, words: str) -> None:
    html = render(source).html

    assert f'<a href="{address}" rel="noopener nofollow ugc">{words}</a>' in html
    assert html.count("<a ") == 1
    assert "<img" not in html


def test_words_with_a_dot_are_no_links() -> None:
    assert "<a" not in render("Read readme.md, or ask at www.example.com.").html


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "<iframe src='https://evil.example'></iframe>",
        "<style>*{display:none}</style>",
        "</main></body><script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "[x](file:///etc/passwd)",
        '[x](https://example.com "onmouseover=alert(1)")',
        '[x](https://example.com/"onmouseover="alert(1))',
        "![x](javascript:alert(1))",
        '![x" onerror="alert(1)](https://example.com)',
        "<javascript:alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "`<script>`\n\n    <script>\n\n```<script>\n<script>\n```",
    ],
)
def test_no_text_can_run_anything(source: str) -> None:
    html = render(source).html

    opened = {part.split(">")[0].split(" ")[0].strip("/") for part in html.split("<")[1:]}
    assert opened <= TAGS
    for part in html.split("<")[1:]:
        attributes = part.split(">")[0]
        assert "javascript:" not in attributes.lower()
        assert not attributes.startswith("a ") or 'href="http' in attributes or "href" not in attributes
        assert " on" not in attributes
        assert "style" not in attributes


def test_headings_stay_below_those_of_the_page_and_leave_out_no_level() -> None:
    html = render("##### deep\n\n# top\n\n### skipping\n\n# top again\n\nunderlined\n---").html

    assert html.split("\n")[:5] == [
        "<h3>deep</h3>",
        "<h3>top</h3>",
        "<h4>skipping</h4>",
        "<h3>top again</h3>",
        "<h4>underlined</h4>",
    ]


def test_a_heading_never_goes_beyond_the_sixth_level() -> None:
    html = render("\n".join(f"{'#' * level} {level}" for level in range(1, 7))).html

    assert [html.count(f"<h{level}>") for level in range(1, 7)] == [0, 0, 1, 1, 1, 3]


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "[",
            "![",
            "[[x]](",
            "://a",
            "a://",
            "[^",
            "http://(",
            "*a_",
            "**a *",
            "_a_",
            "> ",
            "- ",
            "- \n",
            "`a``",
            "<",
        ),
        *("[a]: b\n[a]: b\n> ", "a b@c.de http://x.y ", "\n\n> a", "a\n", "1. a\n"),
        *("http://a.a.", "a@", "x@a.", "[a](http://b 'c ", "# a\n", "a\n=\n", "http://", "ab", "\x00", "\u202e", "&"),
    ],
)
def test_no_text_of_the_full_length_takes_longer_than_it_may(unit: str) -> None:
    """The steps end each of them, whatever time there is. On a busy machine the same work takes longer now and then."""

    def render_seconds() -> float:
        began = time.thread_time()
        with contextlib.suppress(TextLimitExceeded):
            assert len(render((unit * 100_000)[:100_000], ENOUGH_SECONDS).html) <= 5 * MAX_HTML_CHARACTERS
        return time.thread_time() - began

    assert any(render_seconds() < MAX_CPU_SECONDS for _ in range(3))


@pytest.mark.parametrize(("unit", "length"), [("[", 90_000), ("\n\n> a", 50_000), ("http://x.y ", 50_000)])
def test_a_text_is_rendered_or_refused_independently_of_the_available_time(unit: str, length: int) -> None:
    source = (unit * length)[:length]

    def is_rendered(seconds: float) -> bool:
        try:
            return bool(render(source, seconds).html)
        except TextLimitExceeded:
            return False

    assert is_rendered(MAX_CPU_SECONDS) == is_rendered(ENOUGH_SECONDS)


def test_a_text_of_brackets_only_is_refused_however_fast_the_machine_is() -> None:
    with pytest.raises(TextLimitExceeded):
        render("[" * 90_000, ENOUGH_SECONDS)


@pytest.mark.parametrize(
    "source",
    [
        " ".join(file.read_text(encoding="utf-8") for file in sorted(DOCUMENTS.glob("*.md")))[:100_000],
        "".join(f"* [{number}](https://example.com/{number}): *what* it is\n" for number in range(2_000)),
        "".join(f"See https://example.com/events/{number} for it.\n\n" for number in range(2_000)),
        "".join(f"[{number}]: https://example.com/{number}\n" for number in range(1_000)) + "[1]",
    ],
    ids=["a handbook", "a list of links", "addresses", "references"],
)
def test_an_ordinary_text_of_full_length_is_rendered_in_a_part_of_its_time(source: str) -> None:
    assert "<a " in render(source, MAX_CPU_SECONDS / 2).html


def test_a_text_that_takes_too_long_is_not_rendered() -> None:
    with pytest.raises(TextLimitExceeded):
        render("://<b>" * 1_000, seconds=0)


def test_a_plain_text_is_shown_as_written() -> None:
    assert plain("*a* <b>\n") == RenderedText('<p class="plain">*a* &lt;b&gt;\n</p>', "*a* <b>")


def test_a_long_address_repeated_by_reference_is_refused() -> None:
    source = f"[a]: https://example.com/{'x' * 50_000}\n\n{'[a] ' * 12_000}"

    for text in (source, source.replace("[a] ", "![a] ")):
        with pytest.raises(TextLimitExceeded):
            render(text)


def test_an_address_that_is_too_long_for_one_is_shown_whole() -> None:
    source = f"http://{'a.' * 2_000}b"

    assert source in render(source).html


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("# Title\n\nFirst *line*.\nSecond line.\n\n* item", "Title First line. Second line. item"),
        ("[words](https://example.com) ![map](https://example.com/map.png)", "words map"),
        ("<b>bold</b>", "<b>bold</b>"),
        ("word " * 100, "word " * 38 + "word…"),
        ("w" * 300, "w" * 199 + "…"),
    ],
)
def test_the_summary_of_a_text_is_its_beginning_without_markup(source: str, summary: str) -> None:
    assert render(source).summary == summary


def test_a_one_line_text_has_no_control_or_bidi_characters() -> None:
    assert one_line("a\r\nb\u202ec\u2066d\x1b[31me\x00f\u2028g\u200bh") == "a bcd [31me f gh"


@pytest.mark.parametrize(
    "source",
    [
        "See https://example.com/a>b and [this \"one\"](https://example.com/?a=<b>&c='d').",
        '[x](<https://example.com/"><script>alert(1)</script>>) [*bold*](https://example.com "t") <a href="b">c</a>',
        "[![](https://example.com/map.png)](https://example.com) a@b.example <https://c.example/%22>",
    ],
)
def test_without_its_links_a_text_has_their_words_and_nothing_else_changes(source: str) -> None:
    html = render(source).html

    assert "<a " in html
    assert without_links(html) == nh3.clean(html, tags=TAGS - {"a"}, attributes={"ol": {"start"}})
