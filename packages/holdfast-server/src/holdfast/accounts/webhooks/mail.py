"""The mail about an endpoint that was switched off. A process that starts often renders it: it imports little."""

from typing import ClassVar

from holdfast.kit.mail.message import MailMessage, header_text
from holdfast.kit.pages.language import language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.pages.link_mail import LinkMail, link_message


class WebhookMail(LinkMail, kw_only=True, tag="webhook_failing"):
    """A mail about an endpoint to which nothing could be delivered for days.

    host    the name in its address
    """

    is_requested: ClassVar[bool] = False

    host: str


def message(mail: WebhookMail, frame: Frame) -> MailMessage:
    """The rendered mail."""
    _ = frame.texts(language_with_code(mail.language)).gettext
    return link_message(
        mail,
        frame,
        subject=_("Your webhook to %(host)s is switched off") % {"host": header_text(mail.host)},
        first=_(
            "For five days, no message could be delivered to it. So we have stopped trying. Repair the program that "
            "receives the messages, and then make the webhook active again."
        ),
        button=_("See what went wrong"),
        rest=_("Messages wait up to 30 days. When the webhook is active again, they are sent, the oldest first."),
    )
