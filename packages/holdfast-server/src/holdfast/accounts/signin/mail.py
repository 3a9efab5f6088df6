"""The mail with a link to sign in. A process that starts often renders it, so this file imports little."""

from holdfast.kit.mail.message import MailMessage
from holdfast.kit.pages.language import language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.pages.link_mail import LinkMail, link_message

MINUTES = 15
"""The lifetime of a link."""


class SignInMail(LinkMail, tag="sign_in"):
    """The mail whose link signs its reader in."""


def message(mail: SignInMail, frame: Frame) -> MailMessage:
    """The rendered mail."""
    _ = frame.texts(language_with_code(mail.language)).gettext
    return link_message(
        mail,
        frame,
        subject=_("Sign in to %(site)s") % {"site": frame.title},
        first=_("Open the link within %(minutes)s minutes, in the browser in which you asked for it.")
        % {"minutes": MINUTES},
        button=_("Sign in"),
        rest=_("It works once. If you did not ask for it, ignore this e-mail: nobody can sign in without the link."),
    )
