"""The text of an event as it is stored: safe HTML and a summary. `markdown.py` makes it of what an organizer wrote.

Every process shows texts, and few render them. So this module imports none of the libraries that render.
"""

import re

from markupsafe import Markup
from msgspec import Struct

from holdfast.kit.mail.message import header_text

VERSION = 3
"""The version of the HTML. Increase it with every change of the rendering: stored HTML of others is rendered again."""

MAX_SUMMARY_CHARACTERS = 200
"""The most characters of a summary."""

_LINK = re.compile('</?a(?: [a-z]+="[^"]*")*>')
"""The start or end tag of a link in cleaned HTML: no other tag begins like it, and its values have no quotes."""


class RenderedText(Struct, frozen=True):
    """A text as safe HTML for a page, and its beginning as plain text for links to the page."""

    html: str
    summary: str


def plain(source: str) -> RenderedText:
    """The source of a text as HTML, without any rendering."""
    html = Markup('<p class="plain">{}</p>').format(source)
    return RenderedText(str(html), one_line(source[: 10 * MAX_SUMMARY_CHARACTERS], MAX_SUMMARY_CHARACTERS))


def without_links(html: str) -> str:
    """Rendered HTML whose links are replaced by their words. It is fast, since a request waits for it."""
    return _LINK.sub("", html)


def one_line(text: str, max_characters: int = 300) -> str:
    """The text in one line, without control characters and without characters that change the writing direction.

    What is invisible leaves no space behind. The joiners of Persian words and of emoji stay.
    """
    line = " ".join(header_text(text).split())
    if len(line) <= max_characters:
        return line
    return f"{line[: max_characters - 1].rpartition(' ')[0] or line[: max_characters - 1]}…"
