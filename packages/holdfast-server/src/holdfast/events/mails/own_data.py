"""The mail with the link to a person's own data."""

from holdfast.events.mails.model import DataMail
from holdfast.kit.mail.message import MailMessage
from holdfast.kit.pages.language import language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.pages.link_mail import link_message


def message(mail: DataMail, frame: Frame) -> MailMessage:
    """The written mail."""
    _ = frame.texts(language_with_code(mail.language)).gettext
    return link_message(
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
