"""Mails that bring somebody one link. They are written in a process that starts often, so this file imports little."""

import datetime as dt

from msgspec import Struct

from holdfast.kit.mail import Message
from holdfast.kit.pages.frame import Frame
from holdfast.kit.pages.language import named


class LinkMail(Struct):
    """A mail with a link that is to be written.

    link    the address, without a language
    """

    recipient: str
    message_id: str
    caused_at: dt.datetime
    language: str | None
    link: str


def written(mail: LinkMail, frame: Frame, *, subject: str, first: str, button: str, rest: str) -> Message:
    """The mail: a sentence, the link with the text of its button, and what else there is to say."""
    language = named(mail.language)
    link = f"{mail.link}?lang={language.code}"
    return Message(
        recipient=mail.recipient,
        subject=subject,
        text=f"{first}\n\n{link}\n\n{rest}\n",
        html=frame.render(
            "link_mail.html", language=language, subject=subject, first=first, button=button, rest=rest, link=link
        ),
        message_id=mail.message_id,
        date=mail.caused_at,
    )
