"""The mail to a person whose approval an agent waits for. A process that starts often renders it: it imports little."""

from collections.abc import Sequence
from typing import ClassVar

from holdfast.kit.mail.message import MailMessage, header_text
from holdfast.kit.pages.language import language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.pages.link_mail import LinkMail, link_message


class RequestMail(LinkMail, kw_only=True, tag="agent_requests"):
    """A mail about the requests of one credential. The name and the sentences have untrusted text.

    agent        the name of the agent; empty: it has none
    sentences    what it wants to do: the requests that have waited longest
    count        how many requests wait
    """

    is_requested: ClassVar[bool] = False

    agent: str
    sentences: Sequence[str]
    count: int


def message(mail: RequestMail, frame: Frame) -> MailMessage:
    """The rendered mail."""
    language = language_with_code(mail.language)
    texts = frame.texts(language)
    _, ngettext = texts.gettext, texts.ngettext
    agent = header_text(mail.agent) or _("An agent")
    more = mail.count - len(mail.sentences)
    return link_message(
        mail,
        frame,
        subject=ngettext(
            "%(agent)s asks for your approval", "%(agent)s asks for your approval of %(number)s changes", mail.count
        )
        % {"agent": agent, "number": language.number(mail.count)},
        first=_("Nothing is changed before you approve it:"),
        items=[
            *mail.sentences,
            *(
                [ngettext("and %(number)s more", "and %(number)s more", more) % {"number": language.number(more)}]
                if more
                else []
            ),
        ],
        button=_("Approve or decline"),
        rest=_(
            "A request expires after 24 hours. You get at most one of these e-mails an hour for each agent. To get "
            "none, open the limits of the agent."
        ),
    )
