"""Paragraphs: texts that an organizer adds to each kind of mail about an event.

A paragraph is read when a mail is written. So a mail that waits already gets the paragraph that was stored last.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, get_args

import msgspec
from msgspec import Meta, Struct

from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow
from holdfast.events.mails import sql
from holdfast.events.mails.kinds import KINDS, ParagraphKind
from holdfast.events.mails.model import MailFacts
from holdfast.events.organizers.branding import logo_url, photo_origin
from holdfast.events.paths import EventId
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.quotas import require_quota
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses

PARAGRAPH_KINDS: tuple[ParagraphKind, ...] = get_args(ParagraphKind)

Paragraph = Annotated[str, Meta(max_length=1_000, description="Plain text with line breaks. Empty: there is none.")]


class GetMailParagraphs(Command):
    event_id: EventId


class UpdateMailParagraphs(Command):
    """Asks to replace the paragraphs of an event.

    version    the version of the paragraphs that the organizer saw
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
    """The paragraphs of an event by kind of mail, with the facts about the event for previews.

    base_url      the address of the service in mails
    logo_url      the address of the logo in mails; empty: the organizer has none
    images_from   the origin of the logo; empty if it is that of the pages
    """

    event: EventRow
    facts: MailFacts
    texts: dict[str, str]
    base_url: str
    logo_url: str
    images_from: str

    @property
    def kinds(self) -> list[ParagraphKind]:
        """The kinds of mails that can be sent about the event."""
        is_free = self.event.pricing_mode == "free"
        return [kind for kind in PARAGRAPH_KINDS if not (is_free and KINDS[kind].is_paid_only)]

    @property
    def version(self) -> str:
        """A digest of the paragraphs. It changes whenever one of them changes."""
        return _version(self.texts)


@refuses(NOT_FOUND, FORBIDDEN)
async def get(reader: Reader, caller: Caller, command: GetMailParagraphs) -> MailParagraphs:
    """Read the paragraphs in the mails about an event."""
    event = await events.find(reader, caller, command.event_id)
    no_registration = sql.MailFactsRequest(0, 0, "seat", "", event.id, "", "seat")
    facts = (await sql.find_facts(reader, [no_registration]))[0]
    texts = await sql.find_paragraphs(reader, event.id)
    settings = reader.resources.settings
    logo = logo_url(facts.logo, settings)
    return MailParagraphs(event, facts, texts, settings.base_url, logo, photo_origin(settings))


@refuses(NOT_FOUND, FORBIDDEN, QUOTA_EXCEEDED)
async def update(tx: Tx, caller: Caller, command: UpdateMailParagraphs) -> bool:
    """Change the paragraphs in the mails about an event, unless their version is no longer the one of the command.

    Returns whether the stored paragraphs are those of the command. A blank text is not a paragraph.
    """
    event = await events.lock(tx, caller, command.event_id)
    before = await sql.find_paragraphs(tx, event.id)
    texts = {kind: text for kind in PARAGRAPH_KINDS if (text := getattr(command, kind)).strip()}
    if _version(before) != command.version:
        return before == texts
    if _characters(texts) > _characters(before):
        limit = tx.resources.settings.text_per_organizer
        await require_quota(tx, event.organizer_id, message("bytes of text in all its events"), limit, sql.TEXT_BYTES)
    await sql.store_paragraphs(tx, event.id, texts)
    return True


@refuses(NOT_FOUND, FORBIDDEN)
async def copy(tx: Tx, caller: Caller, event_id: int, new_event_id: int) -> None:
    """Copy the paragraphs of an event to a new event of the same caller."""
    await events.find(tx, caller, event_id)
    await sql.copy_paragraphs(tx, event_id, new_event_id)


def _version(texts: Mapping[str, str]) -> str:
    return sha256(msgspec.json.encode(texts, order="sorted")).hexdigest()[:32]


def _characters(texts: Mapping[str, str]) -> int:
    return sum(len(text) for text in texts.values())
