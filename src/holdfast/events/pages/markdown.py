"""The texts of events, Markdown that strangers wrote, as HTML that is safe to show.

Only headings, paragraphs, lists, quotes, code and links are left. Images are not loaded, since pages load nothing from
other servers: a link stands in their place. Headings begin at the third level, since pages have two of their own.
Nobody can keep a process busy with a text: one that takes too long, or would grow too long, is shown as it is written.
"""

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import NamedTuple

import nh3
from cachetools import LRUCache
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

SECONDS = 1.0
"""The most time of a processor that one text may take."""

LONGEST = 1_000_000
"""The most characters of HTML that a text may become."""

SHORT = 10_000
"""Texts of at most so many characters do not wait for longer ones."""

KEPT = 16_000_000
"""The most characters of HTML that a process keeps."""

SUMMARY = 200
"""The most characters of a summary."""

TAGS = set("p br strong em ul ol li blockquote code pre a hr h3 h4 h5 h6".split())

_BARE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]+|\\s+")


class Text(NamedTuple):
    """A text for a page, and the beginning of it in plain words, for links to the page."""

    html: Markup
    summary: str


class TooMuch(Exception):
    """A text takes too long, or becomes too long."""


async def rendered(source: str) -> Text:
    """A text as HTML. It is made in another thread, and kept for the next time."""
    key = sha256(source.encode("utf-8", "surrogatepass")).digest()
    if (known := _known.get(key)) is None:
        thread = _short if len(source) <= SHORT else _long
        known = await asyncio.get_running_loop().run_in_executor(thread, render, source)
        _known[key] = known
    return known


def render(source: str, seconds: float = SECONDS) -> Text:
    """A text as HTML; as plain text if it takes more than so many seconds of the processor."""
    try:
        tokens = _markdown.parse(source, {"until": time.thread_time() + seconds})
        html = _markdown.renderer.render(tokens, _markdown.options, {})
        if len(html) > LONGEST:
            raise TooMuch
    except (TooMuch, RecursionError):
        return Text(Markup('<p class="plain">{}</p>').format(source), one_line(source[: 10 * SUMMARY], SUMMARY))
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener nofollow ugc",
    )
    return Text(Markup(clean), one_line(_words(tokens), SUMMARY))  # noqa: S704 - just cleaned


def one_line(text: str, longest: int = 300) -> str:
    """A text in one line, without characters that control devices or turn the direction of writing."""
    line = _BARE.sub(" ", text).strip()
    if len(line) <= longest:
        return line
    return f"{line[: longest - 1].rpartition(' ')[0] or line[: longest - 1]}…"


def _words(tokens: list[Token]) -> str:
    """The beginning of the text in some tokens."""
    words: list[str] = []
    for token in tokens:
        if sum(map(len, words)) > 10 * SUMMARY:
            break
        words += [" " if each.type.endswith("break") else each.content for each in token.children or ()]
        words.append(" ")
    return "".join(words)


def _in_time(state: StateInline | StateBlock, *_: object) -> bool:
    """A rule that matches nothing, and ends what takes too long. It runs at every place where another could match."""
    if time.thread_time() > state.env["until"]:
        raise TooMuch
    return False


def _nest_headings(state: StateCore) -> None:
    """Let headings begin at the third level, and leave out no level."""
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
    """Show images as links, and let no link be without words."""
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
        if written > LONGEST:
            raise TooMuch


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


class _Markdown(MarkdownIt):
    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the library's name
        """Addresses are shown as they are written."""
        return link


def _made() -> MarkdownIt:
    markdown = _Markdown("commonmark", {"html": False, "linkify": True}).enable("linkify")
    assert markdown.linkify
    # Only what is written as an address becomes a link, not every word with a dot.
    markdown.linkify.set({"fuzzy_link": False})  # pyright: ignore[reportUnknownMemberType] - not annotated
    markdown.inline.ruler.before("text", "in_time", _in_time)
    markdown.block.ruler.before("code", "in_time", _in_time)
    markdown.core.ruler.push("name_links", _name_links)
    markdown.core.ruler.push("nest_headings", _nest_headings)
    return markdown


_markdown = _made()
_known: LRUCache[bytes, Text] = LRUCache(KEPT, lambda text: len(text.html) + 1_000)
_short = ThreadPoolExecutor(1, "markdown")
_long = ThreadPoolExecutor(1, "long markdown")
"""One text at a time, so that rendering takes at most a part of the processor from the answers of others."""
