"""Renders the texts of events, Markdown written by strangers, as HTML that is safe to show.

Only headings, paragraphs, lists, quotes, code and links are kept. An image becomes a link, since pages load nothing
from other servers. Headings begin at the third level, since the page uses the first two. A line stays a line
(decision 100).
A text that takes too many steps, or becomes too long, is not rendered. `rendering.py` runs this in a subprocess.
Steps are counted, so whether a text is rendered does not depend on how busy the machine is.
"""

import re
import signal
import time
from typing import Any, cast
from urllib.parse import unquote

import nh3
from linkify_it import LinkifyIt  # pyright: ignore[reportMissingTypeStubs]
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdurl import encode

from holdfast.events.texts.rendered_text import MAX_SUMMARY_CHARACTERS, RenderedText, one_line
from holdfast.events.texts.web_addresses import bare_address, without_ends

MAX_STEPS = 60_000
"""The most steps of one text. The parser takes one at every position where it tries its rules. A handbook of 100,000
characters takes 5,000. The worst texts take 0.7 seconds of CPU time for this limit."""

LINK_STEPS = 10
"""The steps of an address that becomes a link."""

CHARACTERS_A_STEP = 50
"""The characters that the search for addresses looks at in one step."""

MAX_ADDRESS_CHARACTERS = 2_000
"""The most characters of an address that becomes a link without brackets."""

MAX_CPU_SECONDS = 3.0
"""The most seconds of CPU time that one text may take. Also on a busy machine a text takes `MAX_STEPS` steps before:
this limit is for kinds of texts that the steps do not count rightly."""

MAX_HTML_CHARACTERS = 1_000_000
"""The most characters of the HTML of one text."""

TAGS = set("p br strong em ul ol li blockquote code pre a hr h3 h4 h5 h6".split())

LINK_SCHEMES = {"http", "https", "mailto", "tel", "sms", "geo", "webcal"}
"""The schemes of links: every phone or computer has a program for them, which asks before it does something. Browsers
open no others: their addresses are shown as text behind the words of the link."""

_WEB_SCHEMES = {"http", "https", "mailto"}
_SCHEME_OF_LINK = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_HOST = re.compile(r"(?:www\.|(?:[\w-]+\.)+[a-z]{2,}(?=[/?#:]|$))", re.IGNORECASE)
_MAILBOX = re.compile(r"[^\s@/:?#]+@(?:[\w-]+\.)+[a-z]{2,}(?=\?|$)", re.IGNORECASE)

_SCHEME = re.compile(r"(?:^|[^a-z0-9.+-])(https?)$", re.IGNORECASE)
_MAX_SCHEME_CHARACTERS = len(" https")
_WORD = re.compile(r"\S*")
_MAX_LABEL_CHARACTERS = 64


class TextLimitExceeded(Exception):
    """The rendering of a text takes too many steps or too long, or its HTML is too long."""


class RenderingWork:
    """The steps of one text, and its CPU time."""

    def __init__(self, seconds: float) -> None:
        self.steps = 0
        self._until = time.thread_time() + seconds

    def add(self, steps: int) -> None:
        """Count steps. Raises `TextLimitExceeded` if they are too many, or take too long."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TextLimitExceeded
        self.check_clock()

    def check_clock(self) -> None:
        """Raise `TextLimitExceeded` if the text takes too long."""
        if time.thread_time() > self._until:
            raise TextLimitExceeded


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
    work = RenderingWork(seconds)
    env = {"work": work}
    _linkifier.work = work
    try:
        tokens = _markdown.parse(source, env)
        html = _markdown.renderer.render(tokens, _markdown.options, {})
    except RecursionError as error:
        raise TextLimitExceeded from error
    if len(html) > MAX_HTML_CHARACTERS:
        raise TextLimitExceeded
    work.check_clock()
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        url_schemes=LINK_SCHEMES,
        link_rel="noopener nofollow ugc",
    )
    text = RenderedText(clean, one_line(_words(tokens), MAX_SUMMARY_CHARACTERS))
    work.check_clock()
    return text


def _words(tokens: list[Token]) -> str:
    """The beginning of the text of the tokens."""
    words: list[str] = []
    for token in tokens:
        if sum(map(len, words)) > 10 * MAX_SUMMARY_CHARACTERS:
            break
        words += [" " if child.type.endswith("break") else child.content for child in token.children or ()]
        words.append(" ")
    return "".join(words)


def _count_step(state: StateInline | StateBlock, *_: object) -> bool:
    """A rule that matches nothing, and raises if a limit is exceeded. The parser tries it at every position."""
    work: RenderingWork = state.env["work"]
    work.add(1)
    return False


def _link_address(state: StateInline, silent: bool) -> bool:
    """Make a link of an address with a scheme, as the rule of the library does, which looks at all text before it."""
    if state.linkLevel > 0 or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.pending[-_MAX_SCHEME_CHARACTERS:])
    if scheme is None:
        return False
    begin, end = state.pos - len(scheme[1]), state.pos + 1
    length = _linkifier.test_schema_at(state.src, f"{scheme[1]}:", end)
    length, address = bare_address(state.src[begin : end + length])
    underscores = len(address) - len(address.rstrip("_"))
    if underscores and any(delimiter.marker == ord("_") and delimiter.open for delimiter in state.delimiters):
        # They end the emphasis that began before the address.
        length, address = length - underscores, address[:-underscores]
    target = state.md.normalizeLink(address) if "://" in address else ""
    if not target or not state.md.validateLink(target):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[1])]
        state.push("link_open", "a", 1).attrs = {"href": target}
        state.push("text", "", 0).content = address
        state.push("link_close", "a", -1)
        work: RenderingWork = state.env["work"]
        work.add(LINK_STEPS)
    state.pos = begin + length
    return True


class _Linkifier(LinkifyIt):
    """Finds addresses in texts. It looks at a part of a text for each, and counts the steps."""

    work: RenderingWork

    def test_schema_at(self, text: str, name: str, position: int) -> int:
        """The number of characters of an address after its scheme; 0: it is none, or too long for a link."""
        end = position + MAX_ADDRESS_CHARACTERS
        word = _WORD.match(text, position, end)
        self.work.add((word.end() - position if word else 0) // CHARACTERS_A_STEP)
        # The library looks at up to three characters before the position.
        begin = max(0, position - 3)
        length: int = cast(Any, super()).test_schema_at(text[begin:end], name, position - begin)
        # An address that goes on behind the part may have been found without its last label.
        return length if position + length < end - _MAX_LABEL_CHARACTERS else 0

    def test(self, text: str) -> bool:
        """Whether a text may have addresses."""
        return cast(Any, super()).test(without_ends(text))

    def match(self, text: str) -> list[Any] | None:
        """The addresses in a text."""
        matches: list[Any] = cast(Any, super()).match(without_ends(text)) or []
        self.work.add(LINK_STEPS * len(matches))
        for match in matches:
            length, address = bare_address(match.raw)
            match.url = match.url.removesuffix(match.raw) + address
            match.text = match.raw = address
            match.last_index = match.index + length
        return [match for match in matches if match.raw]


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
    """Turn images into links, give every link without words its address as text, and write out what is no link."""
    address_chars = 0
    for token in state.tokens:
        children: list[Token] = []
        link_start: Token | None = None
        begin = 0
        for child in token.children or ():
            if child.type == "link_open":
                link_start, begin = child, len(children)
                address_chars += len(str(child.attrs["href"]))
            elif child.type == "link_close" and link_start:
                children[begin:] = _named_link(str(link_start.attrs["href"]), children[begin + 1 :])
                link_start = None
                continue
            elif child.type == "image":
                address = str(child.attrs["src"])
                address_chars += len(address)
                words = _text(_words([child]).strip() or _readable(address))
                children += _named_link(address, [words]) if link_start is None else [words]
                continue
            children.append(child)
        if token.children is not None:
            token.children = children
        if address_chars > MAX_HTML_CHARACTERS:
            raise TextLimitExceeded


def _named_link(address: str, content: list[Token]) -> list[Token]:
    """A link with words. An address that is no link is text: nothing that was written is lost."""
    address = _with_scheme(address)
    words = "".join(token.content for token in content).strip()
    scheme = _SCHEME_OF_LINK.match(address)
    if scheme and scheme[1].lower() not in LINK_SCHEMES:
        readable = _readable(address)
        if not words:
            return [_text(readable)]
        return content if readable.lower() in words.lower() else [*content, _text(f" ({readable})")]
    link = Token("link_open", "a", 1, attrs={"href": address})
    return [link, *(content if words else [_text(_readable(address))]), Token("link_close", "a", -1)]


def _with_scheme(address: str) -> str:
    """The address of a link as it was meant: `www.example.com` is no page of ours."""
    if _MAILBOX.match(address):
        return f"mailto:{address}"
    return f"https://{address}" if _HOST.match(address) else address


def _readable(address: str) -> str:
    return unquote(address)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


class _Markdown(MarkdownIt):
    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the library's name
        """Show addresses as they are written."""
        return link

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        """Encode addresses for HTML. Only those of the web are parsed: the parser would lose parts of others."""
        scheme = _SCHEME_OF_LINK.match(url)
        return encode(url) if scheme and scheme[1].lower() not in _WEB_SCHEMES else super().normalizeLink(url)


def _build_markdown() -> MarkdownIt:
    markdown = _Markdown("commonmark", {"html": False, "linkify": True, "breaks": True}).enable("linkify")
    markdown.linkify = _linkifier
    markdown.inline.ruler.at("linkify", _link_address)
    markdown.inline.ruler.before("text", "count_step", _count_step)
    # Also in the search for the line that ends a paragraph, a quote or a list.
    markdown.block.ruler.before(
        "code", "count_step", _count_step, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    markdown.core.ruler.push("name_links", _name_links)
    markdown.core.ruler.push("nest_headings", _nest_headings)
    return markdown


# Only text with a scheme becomes a link, not every word with a dot.
_linkifier = _Linkifier(options={"fuzzy_link": False})
_linkifier.work = RenderingWork(0)
_markdown = _build_markdown()
