"""The mail with a link to one's own data."""

from holdfast.events.mails.model import DataMail
from holdfast.kit.mail import Message
from holdfast.kit.pages.frame import Frame
from holdfast.kit.pages.language import named


def message(mail: DataMail, frame: Frame) -> Message:
    """The mail, written."""
    language = named(mail.language)
    _ = frame.texts(language).gettext
    subject = _("Your data at %(site)s") % {"site": frame.title}
    first = _("With this link you download what is stored about you, or have it erased. Nothing happens before you do.")
    rest = _(
        "It works once, for an hour. Somebody has asked for it who has one of your mails about a registration. If that "
        "was not you, you need not do anything. Do not forward this mail."
    )
    link = f"{mail.link}?lang={language.code}"
    return Message(
        recipient=mail.recipient,
        subject=subject,
        text=f"{first}\n\n{link}\n\n{rest}\n",
        html=frame.render("own_data.html", language=language, subject=subject, first=first, rest=rest, link=link),
        message_id=mail.message_id,
        date=mail.caused_at,
    )
