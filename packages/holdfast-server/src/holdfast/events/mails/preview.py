"""Previews of mails, made by the code that writes real mails, for an invented person."""

import re
from base64 import b64encode
from datetime import timedelta
from hashlib import sha256

import msgspec
from msgspec import Struct

from holdfast.events.mails.kinds import KINDS, ParagraphKind
from holdfast.events.mails.model import (
    MailArguments,
    MailBatch,
    MailFacts,
    RegistrationMail,
)
from holdfast.events.mails.paragraphs import MailParagraphs
from holdfast.events.mails.writing import message
from holdfast.events.paths import event_path
from holdfast.events.registrations.links import REGISTRATIONS_PATH, SIGNATURE_DIGITS
from holdfast.kit.mail.message import MailMessage, header_text
from holdfast.kit.pages.language import LANGUAGES, Language

NAME = "Kim"
"""The name of the invented person."""

PAID_WITHIN = timedelta(hours=12)
"""The time that the invented person has to pay."""

_STYLE = re.compile("<style>(.*?)</style>", re.DOTALL)


class MailPreview(Struct):
    """The preview of a mail in one language.

    html     a complete document: its picture is embedded, and its links do nothing
    style    the source expression that allows its style in `style-src`
    """

    language: Language
    subject: str
    text: str
    html: str
    style: str


def preview_mails(kind: ParagraphKind, text: str, paragraphs: MailParagraphs) -> list[MailPreview]:
    """The previews of a kind of mail with a paragraph, in each language."""
    facts = _example_facts(kind, text, paragraphs)
    mails = [(language, _example_mail(kind, language, facts, paragraphs)) for language in LANGUAGES.values()]
    batch = MailBatch(paragraphs.base_url, "preview@example.com", "", [mail for _, mail in mails])
    return [_preview_of(message(mail, batch), language) for language, mail in mails]


def _example_facts(kind: ParagraphKind, text: str, paragraphs: MailParagraphs) -> MailFacts:
    """The facts about the event, with those of an invented registration that causes such a mail."""
    return msgspec.structs.replace(
        paragraphs.facts,
        status=next(iter(KINDS[kind].true_with), None),
        amount_paid=paragraphs.event.current_price,
        amount_due=paragraphs.event.current_price,
        held_until=paragraphs.facts.now + PAID_WITHIN if kind == "payment_due" else None,
        promoted_at=paragraphs.facts.now if kind == "promoted" else None,
        paragraph=text,
    )


def _example_mail(
    kind: ParagraphKind, language: Language, facts: MailFacts, paragraphs: MailParagraphs
) -> RegistrationMail:
    return RegistrationMail(
        recipient="kim@example.com",
        message_id="preview@example.com",
        caused_at=facts.now,
        kind=kind,
        arguments=MailArguments(
            facts.id, "somebody", 1, name=NAME, language=language.code, amount=paragraphs.event.current_price
        ),
        facts=facts,
        # It has the form of a real link, but its signature is wrong.
        registration_url=f"{paragraphs.base_url}{REGISTRATIONS_PATH}/{facts.id}-somebody-1-{'0' * SIGNATURE_DIGITS}",
        event_url=paragraphs.base_url + event_path(paragraphs.event.organizer_slug, facts.id),
        logo_url=paragraphs.logo_url,
        stop_url=f"{paragraphs.base_url}/mails/{'0' * 64}-{'0' * SIGNATURE_DIGITS}",
    )


def _preview_of(mail: MailMessage, language: Language) -> MailPreview:
    """The preview of a written mail."""
    [style] = _STYLE.findall(mail.html)
    # The frame of the preview may not open windows, so links to a new window do nothing.
    html = mail.html.replace("<head>", '<head>\n  <base target="_blank">', 1)
    for attachment in mail.attachments:
        if attachment.cid:
            inside = f"data:{attachment.type};base64,{b64encode(attachment.content).decode()}"
            html = html.replace(f'src="cid:{attachment.cid}"', f'src="{inside}"')
    allowed = f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
    return MailPreview(language, header_text(mail.subject), mail.text, html, allowed)
