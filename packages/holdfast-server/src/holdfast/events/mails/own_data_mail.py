"""The mail with the link to a person's own data. A process that starts often renders it, so it imports little."""

from holdfast.kit.mail.message import MailMessage
from holdfast.kit.pages.language import language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.pages.link_mail import LinkMail, link_message


class DataMail(LinkMail, tag="own_data"):
    """The mail with the link to a person's own data."""


def message(mail: DataMail, frame: Frame) -> MailMessage:
    """The written mail."""
    _ = frame.texts(language_with_code(mail.language)).gettext
    return link_message(
        mail,
        frame,
        subject=_("Your data at %(site)s") % {"site": frame.title},
        first=_("Somebody wants to download or erase your data. If that was you, open this page:"),
        button=_("Go to your data"),
        rest=_(
            "The link works once, within one hour. Do not forward this e-mail. If that was not you, ignore it: nothing "
            "happens then."
        ),
    )
