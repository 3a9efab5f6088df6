"""Texts of strangers that leave our pages: in mails, calendars and feeds, in titles of pages and previews of links.

There, programs show a web address as a link, or beside the address of this service, and nothing says who wrote it. So

* in mails, no text of a stranger has a web address, for any organizer (decision 63)
* elsewhere, no text of an organizer has one until it has proved its address (decision 67)

Pages show the texts as they are, and say who the organizer is. The export of a person's data is complete too.
`tests/events/pages/test_outbound_texts.py` lists all outputs.
"""

from functools import lru_cache
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from holdfast.events.texts.web_addresses import replace_links
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.mail.message import header_text, joined_lines

S = TypeVar("S", bound=Struct)

FIELDS = ("title", "location_name", "address", "organizer_name", "name")
"""The fields with texts of strangers. Other texts are given to `outbound_text`."""

OMISSION = "…"
"""Stands for an address in the title of a page, and in the preview of a link to it."""

TEXT_CACHE_SIZE = 1_000
"""Texts that are remembered: the mails and pages of an event have the same ones again and again."""

MAX_REMEMBERED_LENGTH = 500
"""Characters of a text that is remembered."""

REMEMBERED_TEXTS = cache_bound(
    "Texts whose web addresses were found",
    "events",
    f"{TEXT_CACHE_SIZE} of at most {MAX_REMEMBERED_LENGTH} characters",
    lost="is searched again",
)


def without_web_addresses(content: S, replacement: str, *, is_confirmed: bool = False) -> S:
    """A copy of an event, or of the data of a mail, that may leave our pages: its `FIELDS` have no web addresses.

    is_confirmed    whether the organizer has proved its address: then the content is as it was written. Never for mails
    """
    if is_confirmed:
        return content
    texts = {name: getattr(content, name, None) for name in FIELDS}
    lines = {name: joined_lines(text) if name == "address" else text for name, text in texts.items() if text}
    # The name of a person is in few mails, and is not kept in memory.
    person = {"name": _without_links(lines.pop("name"), replacement)} if "name" in lines else {}
    return replace(content, **person, **{name: outbound_text(line, replacement) for name, line in lines.items()})


def outbound_text(text: str, replacement: str = OMISSION, *, is_confirmed: bool = False) -> str:
    """One text without web addresses."""
    if is_confirmed:
        return text
    return (_remembered if len(text) <= MAX_REMEMBERED_LENGTH else _without_links)(text, replacement)


def _without_links(text: str, replacement: str) -> str:
    return replace_links(header_text(text), replacement)


_remembered = lru_cache(TEXT_CACHE_SIZE)(_without_links)


def page_title(text: str, is_confirmed: bool) -> str:
    """A text without web addresses, in the title of a page: a filter of templates."""
    return outbound_text(text, is_confirmed=is_confirmed)
