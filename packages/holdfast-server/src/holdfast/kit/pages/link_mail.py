"""Mails with one link. They are rendered in a subprocess that starts often, so this module imports little."""

import datetime as dt
from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from holdfast.kit.mail.message import MailMessage
from holdfast.kit.pages.language import Language, language_with_code
from holdfast.kit.pages.layout import Frame


class LinkMail(Struct):
    """A mail with a link, before it is rendered.

    link            the URL, without a language
    stop_url        the URL that stops all mails to the recipient, without a language
    is_requested    whether the recipient has requested it, so that it is sent even if mails are stopped
    """

    is_requested: ClassVar[bool] = True

    recipient: str
    message_id: str
    caused_at: dt.datetime
    language: str | None
    link: str
    stop_url: str = ""


def link_message(
    mail: LinkMail, frame: Frame, *, subject: str, first: str, items: Sequence[str] = (), button: str, rest: str
) -> MailMessage:
    """The rendered mail: a first sentence, a list, the link with the text of its button, and the rest of the text."""
    language = language_with_code(mail.language)
    link = url_in_language(mail.link, language)
    stop_sentence = "" if mail.is_requested else stop_text(frame, language, mail.stop_url)
    return MailMessage(
        recipient=mail.recipient,
        subject=subject,
        text="\n\n".join([first, *(f"* {item}" for item in items), f"{button}:\n{link}", f"{rest}\n{stop_sentence}"]),
        html=frame.render(
            "link_mail.html",
            language=language,
            subject=subject,
            first=first,
            items=items,
            button=button,
            rest=rest,
            link=link,
            stop_url="" if mail.is_requested else url_in_language(mail.stop_url, language),
        ),
        message_id=mail.message_id,
        date=mail.caused_at,
        unsubscribe=mail.stop_url,
    )


def stop_text(frame: Frame, language: Language, stop_url: str) -> str:
    """The end of a mail, which explains how to stop all mails."""
    stopping = frame.texts(language).gettext("Stop all e-mails of %(site)s to this address:") % {"site": frame.title}
    return f"\n{stopping}\n{url_in_language(stop_url, language)}\n"


def url_in_language(url: str, language: Language) -> str:
    """The URL of a page, in a language."""
    return f"{url}?lang={language.code}"
