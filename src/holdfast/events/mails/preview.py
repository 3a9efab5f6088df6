"""What a mail will look like: made by the code that writes the mails that are sent, for a person who is made up."""

import re
from base64 import b64encode
from datetime import timedelta
from hashlib import sha256

import msgspec
from msgspec import Struct

from holdfast.events.mails.model import STANDING, Arguments, Known, Order, ParagraphKind, Portion
from holdfast.events.mails.paragraphs import MailParagraphs
from holdfast.events.mails.writing import message
from holdfast.events.paths import event_path
from holdfast.events.registrations.links import DIGITS, PATH
from holdfast.kit.mail import Message, plain
from holdfast.kit.pages.language import LANGUAGES, Language

NAME = "Kim"
"""The person who is made up."""

PAID_WITHIN = timedelta(hours=12)
"""How long that person has to pay."""

_STYLE = re.compile("<style>(.*?)</style>", re.DOTALL)


class Preview(Struct):
    """A mail in one language.

    html     a document by itself: its picture is inside, and its links lead nowhere
    style    its style, as `style-src` of a policy allows it
    """

    language: Language
    subject: str
    text: str
    html: str
    style: str


def preview(kind: ParagraphKind, text: str, of: MailParagraphs) -> list[Preview]:
    """The mail of a kind with a paragraph, in each language."""
    known = _imagined(kind, text, of)
    orders = [(language, _order(kind, language, known, of)) for language in LANGUAGES.values()]
    portion = Portion(of.base_url, "preview@example.com", "", [order for _, order in orders])
    return [_shown(message(order, portion), language) for language, order in orders]


def _imagined(kind: ParagraphKind, text: str, of: MailParagraphs) -> Known:
    """What would be known of the event and of a registration about which such a mail is written."""
    return msgspec.structs.replace(
        of.known,
        standing=STANDING[kind][0] if kind in STANDING else None,
        amount_paid=of.event.current_price,
        amount_due=of.event.current_price,
        held_until=of.known.now + PAID_WITHIN if kind == "payment_due" else None,
        promoted_at=of.known.now if kind == "promoted" else None,
        paragraph=text,
    )


def _order(kind: ParagraphKind, language: Language, known: Known, of: MailParagraphs) -> Order:
    return Order(
        recipient="kim@example.com",
        message_id="preview@example.com",
        caused_at=known.now,
        kind=kind,
        caused=Arguments(known.id, "somebody", 1, name=NAME, language=language.code, amount=of.event.current_price),
        known=known,
        # Shaped like a real link, which this is not: its signature is wrong.
        own=f"{of.base_url}{PATH}/{known.id}-somebody-1-{'0' * DIGITS}",
        page=of.base_url + event_path(of.event.organizer_slug, known.id),
    )


def _shown(mail: Message, language: Language) -> Preview:
    """What a mail program shows of a mail."""
    [style] = _STYLE.findall(mail.html)
    # In a frame that may open no windows, links to a new one do nothing.
    html = mail.html.replace("<head>", '<head>\n  <base target="_blank">', 1)
    for each in mail.attachments:
        if each.cid:
            inside = f"data:{each.type};base64,{b64encode(each.content).decode()}"
            html = html.replace(f'src="cid:{each.cid}"', f'src="{inside}"')
    allowed = f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
    return Preview(language, plain(mail.subject), mail.text, html, allowed)
