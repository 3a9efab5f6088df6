"""The mail with a link to sign in. It is written in a process that starts often, so this file imports little."""

import datetime as dt

from msgspec import Struct

from holdfast.kit.mail import Message
from holdfast.kit.pages.frame import Frame
from holdfast.kit.pages.language import named

MINUTES = 15
"""How long a link works."""


class SignInMail(Struct, tag="sign_in"):
    """A mail that is to be written.

    link    the address that signs its reader in
    """

    recipient: str
    message_id: str
    caused_at: dt.datetime
    language: str | None
    link: str


def message(mail: SignInMail, frame: Frame) -> Message:
    """The mail, written."""
    language = named(mail.language)
    _ = frame.texts(language).gettext
    subject = _("Sign in to %(site)s") % {"site": frame.title}
    first = _("With this link you sign in, in the browser in which you asked for it.")
    rest = _("It works once, for %(minutes)s minutes. If you did not ask for it, you need not do anything.") % {
        "minutes": MINUTES
    }
    link = f"{mail.link}?lang={language.code}"
    return Message(
        recipient=mail.recipient,
        subject=subject,
        text=f"{first}\n\n{link}\n\n{rest}\n",
        html=frame.render("signin/mail.html", language=language, subject=subject, first=first, rest=rest, link=link),
        message_id=mail.message_id,
        date=mail.caused_at,
    )
