"""Paragraphs: what an organizer adds, in words of its own, to each kind of mail about an event.

They are read when a mail is written. So a mail that waits already says what was stored last.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, get_args

import msgspec
from msgspec import Meta, Struct

from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow
from holdfast.events.ids import EventId
from holdfast.events.mails import sql
from holdfast.events.mails.model import OF_PAID, Known, ParagraphKind
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.quotas import require_room
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.said import said

KINDS: tuple[ParagraphKind, ...] = get_args(ParagraphKind)

Paragraph = Annotated[str, Meta(max_length=1_000, description="Plain text with line breaks. Empty: there is none.")]


class GetMailParagraphs(Command):
    event_id: EventId


class UpdateMailParagraphs(Command):
    """Asks that these are the paragraphs of an event.

    version    that of the paragraphs that somebody saw who asks for it
    """

    event_id: EventId
    version: str
    seat: Paragraph = ""
    waitlisted: Paragraph = ""
    promoted: Paragraph = ""
    payment_due: Paragraph = ""
    refused: Paragraph = ""
    removed: Paragraph = ""
    refund: Paragraph = ""
    event_changed: Paragraph = ""
    event_cancelled: Paragraph = ""


class MailParagraphs(Struct):
    """The paragraphs of an event, by kind of mail; and what mails say of the event.

    base_url    the address of the service in mails
    """

    event: EventRow
    known: Known
    texts: dict[str, str]
    base_url: str

    @property
    def kinds(self) -> list[ParagraphKind]:
        """The kinds of mails that are sent about the event."""
        is_free = self.event.pricing_mode == "free"
        return [kind for kind in KINDS if not (is_free and kind in OF_PAID)]

    @property
    def version(self) -> str:
        """Changes whenever a paragraph changes."""
        return _version(self.texts)


@refuses(NOT_FOUND, FORBIDDEN)
async def get(reader: Reader, caller: Caller, command: GetMailParagraphs) -> MailParagraphs:
    """Read the paragraphs in the mails about an event."""
    event = await events.find(reader, caller, command.event_id)
    nobody = sql.Asked(0, 0, "seat", "", event.id, "", "seat")
    known = await sql.find(reader, [nobody])
    texts = await sql.paragraphs(reader, event.id)
    return MailParagraphs(event, known[0], texts, reader.resources.settings.base_url)


@refuses(NOT_FOUND, FORBIDDEN, QUOTA_EXCEEDED)
async def update(tx: Tx, caller: Caller, command: UpdateMailParagraphs) -> bool:
    """Change the paragraphs in the mails about an event, unless somebody else has changed them since they were seen.

    Returns whether they are what was asked for. A text that is blank is no paragraph.
    """
    event = await events.lock(tx, caller, command.event_id)
    before = await sql.paragraphs(tx, event.id)
    texts = {kind: text for kind in KINDS if (text := getattr(command, kind)).strip()}
    if _version(before) != command.version:
        return before == texts
    if _characters(texts) > _characters(before):
        most = tx.resources.settings.text_per_organizer
        await require_room(tx, event.organizer_id, said("bytes of text in all its events"), most, sql.TEXT)
    await sql.store_paragraphs(tx, event.id, texts)
    return True


@refuses(NOT_FOUND, FORBIDDEN)
async def copy(tx: Tx, caller: Caller, event_id: int, to: int) -> None:
    """Give the paragraphs of an event to a new one of the same caller."""
    await events.find(tx, caller, event_id)
    await sql.copy_paragraphs(tx, event_id, to)


def _version(texts: Mapping[str, str]) -> str:
    return sha256(msgspec.json.encode(texts, order="sorted")).hexdigest()[:32]


def _characters(texts: Mapping[str, str]) -> int:
    return sum(len(text) for text in texts.values())
