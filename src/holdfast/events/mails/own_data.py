"""The mail with a link to one's own data."""

from holdfast.events.mails.model import DataMail
from holdfast.kit.mail import Message
from holdfast.kit.pages.frame import Frame
from holdfast.kit.pages.language import named
from holdfast.kit.pages.link_mail import written


def message(mail: DataMail, frame: Frame) -> Message:
    """The mail, written."""
    _ = frame.texts(named(mail.language)).gettext
    return written(
        mail,
        frame,
        subject=_("Your data at %(site)s") % {"site": frame.title},
        first=_(
            "With this link you download what is stored about you, or have it erased. Nothing happens before you do."
        ),
        button=_("To your data"),
        rest=_(
            "It works once, for an hour. Somebody has asked for it who is signed in with your address, or has one of "
            "your mails about a registration. If that was not you, you need not do anything. Do not forward this mail."
        ),
    )
