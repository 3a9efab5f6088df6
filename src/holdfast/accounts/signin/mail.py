"""The mail with a link to sign in. It is written in a process that starts often, so this file imports little."""

from holdfast.kit.mail import Message
from holdfast.kit.pages.frame import Frame
from holdfast.kit.pages.language import named
from holdfast.kit.pages.link_mail import LinkMail, written

MINUTES = 15
"""How long a link works."""


class SignInMail(LinkMail, tag="sign_in"):
    """The mail whose link signs its reader in."""


def message(mail: SignInMail, frame: Frame) -> Message:
    """The mail, written."""
    _ = frame.texts(named(mail.language)).gettext
    return written(
        mail,
        frame,
        subject=_("Sign in to %(site)s") % {"site": frame.title},
        first=_("With this link you sign in, in the browser in which you asked for it."),
        button=_("Sign in"),
        rest=_("It works once, for %(minutes)s minutes. If you did not ask for it, you need not do anything.")
        % {"minutes": MINUTES},
    )
