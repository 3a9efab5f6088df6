"""Renders the texts of events, Markdown written by strangers, as HTML that is safe to show.

Only headings, paragraphs, lists, quotes, code and links are kept. An image becomes a link, since pages load nothing
from other servers. Headings begin at the third level, since the page uses the first two.
A text that takes too long, or becomes too long, is not rendered. `text_rendering.py` runs this in a subprocess.
"""

import re
import signal
import time
from collections.abc import MutableMapping
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup
from msgspec import Struct

VERSION = 1
"""The version of the HTML. Increase it with every change of the rendering: stored HTML of others is rendered again."""

MAX_CPU_SECONDS = 1.0
"""The most seconds of CPU time that one text may take."""

MAX_HTML_CHARACTERS = 1_000_000
"""The most characters of the HTML of one text."""

MAX_SUMMARY_CHARACTERS = 200
"""The most characters of a summary."""

TAGS = set("p br strong em ul ol li blockquote code pre a hr h3 h4 h5 h6".split())

_BARE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]+|\\s+")

_LINK = re.compile('</?a(?: [a-z]+="[^"]*")*>')
"""The start or end tag of a link in cleaned HTML: no other tag begins like it, and its values have no quotes."""


class RenderedText(Struct, frozen=True):
    """A text as safe HTML for a page, and its beginning as plain text for links to the page."""

    html: str
    summary: str


class TextLimitExceeded(Exception):
    """The rendering of a text takes too long, or its HTML is too long."""


def render_or_end(source: str) -> RenderedText | None:
    """The text as HTML; None if it exceeds a limit. SIGPROF kills this process if one step does not end."""
    signal.setitimer(signal.ITIMER_PROF, 2 * MAX_CPU_SECONDS)
    try:
        return render(source)
    except TextLimitExceeded:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def render(source: str, seconds: float = MAX_CPU_SECONDS) -> RenderedText:
    """The text as HTML. Raises `TextLimitExceeded`, also if it takes more than `seconds` of CPU time."""
    env = {"until": time.thread_time() + seconds}
    try:
        tokens = _markdown.parse(source, env)
        html = _markdown.renderer.render(tokens, _markdown.options, {})
    except RecursionError as error:
        raise TextLimitExceeded from error
    if len(html) > MAX_HTML_CHARACTERS:
        raise TextLimitExceeded
    _look_at_clock(env)
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener nofollow ugc",
    )
    text = RenderedText(clean, one_line(_words(tokens), MAX_SUMMARY_CHARACTERS))
    _look_at_clock(env)
    return text


def plain(source: str) -> RenderedText:
    """The source of a text as HTML, without any rendering."""
    html = Markup('<p class="plain">{}</p>').format(source)
    return RenderedText(str(html), one_line(source[: 10 * MAX_SUMMARY_CHARACTERS], MAX_SUMMARY_CHARACTERS))


def without_links(html: str) -> str:
    """Rendered HTML whose links are replaced by their words. It is fast, since a request waits for it."""
    return _LINK.sub("", html)


def one_line(text: str, max_characters: int = 300) -> str:
    """The text in one line, without control characters and without characters that change the writing direction."""
    line = _BARE.sub(" ", text).strip()
    if len(line) <= max_characters:
        return line
    return f"{line[: max_characters - 1].rpartition(' ')[0] or line[: max_characters - 1]}…"


def _words(tokens: list[Token]) -> str:
    """The beginning of the text of the tokens."""
    words: list[str] = []
    for token in tokens:
        if sum(map(len, words)) > 10 * MAX_SUMMARY_CHARACTERS:
            break
        words += [" " if child.type.endswith("break") else child.content for child in token.children or ()]
        words.append(" ")
    return "".join(words)


def _in_time(state: StateInline | StateBlock, *_: object) -> bool:
    """A rule that matches nothing, and raises if time is up. The parser tries it at every position."""
    _look_at_clock(state.env)
    return False


def _look_at_clock(env: MutableMapping[str, Any]) -> None:
    if time.thread_time() > env["until"]:
        raise TextLimitExceeded


def _nest_headings(state: StateCore) -> None:
    """Make headings begin at the third level and skip no level."""
    above: list[int] = []
    for token in state.tokens:
        if token.type == "heading_open":
            level = int(token.tag[1])
            while above and above[-1] >= level:
                above.pop()
            above.append(level)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, 2 + len(above))}"


def _name_links(state: StateCore) -> None:
    """Turn images into links, and give every link without words its address as text."""
    written = 0
    for token in state.tokens:
        children: list[Token] = []
        opened: Token | None = None
        empty = False
        for child in token.children or ():
            if child.type == "link_open":
                opened, empty = child, True
                written += len(str(child.attrs["href"]))
            elif child.type == "link_close" and opened:
                children += [_text(str(opened.attrs["href"]))] if empty else []
                opened = None
            elif child.type == "image":
                address = str(child.attrs["src"])
                written += len(address)
                words = _text(_words([child]).strip() or address)
                if opened is None:
                    children += [Token("link_open", "a", 1, attrs={"href": address}), words]
                    children.append(Token("link_close", "a", -1))
                else:
                    children.append(words)
                empty = False
                continue
            elif child.content.strip():
                empty = False
            children.append(child)
        if token.children is not None:
            token.children = children
        if written > MAX_HTML_CHARACTERS:
            raise TextLimitExceeded


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


class _Markdown(MarkdownIt):
    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the library's name
        """Show addresses as they are written."""
        return link


def _build_markdown() -> MarkdownIt:
    markdown = _Markdown("commonmark", {"html": False, "linkify": True}).enable("linkify")
    assert markdown.linkify
    # Only text with a scheme becomes a link, not every word with a dot.
    markdown.linkify.set({"fuzzy_link": False})  # pyright: ignore[reportUnknownMemberType] - not annotated
    markdown.inline.ruler.before("text", "in_time", _in_time)
    markdown.block.ruler.before("code", "in_time", _in_time)
    markdown.core.ruler.push("name_links", _name_links)
    markdown.core.ruler.push("nest_headings", _nest_headings)
    return markdown


_markdown = _build_markdown()
