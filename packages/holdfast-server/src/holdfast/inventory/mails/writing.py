"""Writes mails, such as the one about a pool that runs low, in a subprocess, since it takes milliseconds.

The subprocess starts while a mail is waited for, so this file imports little.
"""

from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from holdfast import accounts
from holdfast.accounts.agents import mail as request_mail
from holdfast.accounts.agents.mail import RequestMail
from holdfast.accounts.signin import mail as sign_in
from holdfast.accounts.signin.mail import SignInMail
from holdfast.accounts.webhooks import mail as webhook_mail
from holdfast.accounts.webhooks.mail import WebhookMail
from holdfast.inventory.unit_words import counted_unit
from holdfast.kit.mail.message import MailMessage, header_text
from holdfast.kit.pages.language import language_with_code
from holdfast.kit.pages.layout import Frame
from holdfast.kit.pages.link_mail import LinkMail, link_message

FRAME = Frame("Holdfast Inventory", Path(__file__).parent, accounts.FOLDER)


class LowStockMail(LinkMail, kw_only=True, tag="low_stock"):
    """A mail about a pool that has fallen to its `low_stock_at`. The name and the unit are untrusted text.

    taken_per_day    units, on average of the last 28 days
    days_of_cover    for how many days the stock lasts at that pace; None while none is taken
    """

    is_requested: ClassVar[bool] = False

    shop: str
    pool: str
    unit: str
    available: int
    low_stock_at: int
    taken_per_day: float
    days_of_cover: float | None


def message(mail: LowStockMail, frame: Frame) -> MailMessage:
    """The text of the mail."""
    language = language_with_code(mail.language)
    texts = frame.texts(language)
    _, ngettext = texts.gettext, texts.ngettext
    # Marks keep a name in another direction of writing from changing the order of the words around it.
    pool = f"\u2068{header_text(mail.pool)}\u2069"

    def amount(number: float) -> str:
        """A number with the unit of the pool. The default unit is translated; others are words of the merchant."""
        if mail.unit == "units":
            count = 1 if number == 1 else 2
            return ngettext("%(number)s unit", "%(number)s units", count) % {"number": language.number(number)}
        return f"{language.number(number)} \u2068{header_text(counted_unit(mail.unit, number))}\u2069"

    sentences = [
        _("%(pool)s has %(amount)s left that can be sold. The low-stock limit is %(limit)s.")
        % {"pool": pool, "amount": amount(mail.available), "limit": language.number(mail.low_stock_at)}
    ]
    pace = round(mail.taken_per_day, 1)
    if mail.available and pace and mail.days_of_cover is not None:
        days = round(mail.days_of_cover)
        sentence = (
            ngettext(
                "At %(amount)s a day, this lasts about %(number)s day.",
                "At %(amount)s a day, this lasts about %(number)s days.",
                days,
            )
            if days
            else _("At %(amount)s a day, this lasts less than a day.")
        )
        sentences.append(sentence % {"amount": amount(pace), "number": language.number(days)})
    sentences.append(_("When new goods come in, add them on the page of the pool."))
    return link_message(
        mail,
        frame,
        subject=_("Low stock: %(pool)s, %(amount)s left")
        % {"pool": header_text(mail.pool), "amount": header_text(amount(mail.available))},
        first=" ".join(sentences),
        items=[],
        button=_("Open the pool"),
        rest=_(
            "This is about your shop %(shop)s. You get one e-mail each time the pool falls to its limit. You can turn "
            "these e-mails off in the settings."
        )
        % {"shop": mail.shop},
    )


MailContent = SignInMail | LowStockMail | RequestMail | WebhookMail
"""A mail to be written, with all data for it. It has no secret."""


class MailBatch(Struct):
    """Mails that are written together."""

    sender: str
    mails: list[MailContent]


def write(batch: MailBatch) -> list[bytes]:
    """The content of each mail, as it is sent."""
    return [_message_of(mail).encoded(batch.sender) for mail in batch.mails]


def _message_of(mail: MailContent) -> MailMessage:
    if isinstance(mail, SignInMail):
        return sign_in.message(mail, FRAME)
    if isinstance(mail, RequestMail):
        return request_mail.message(mail, FRAME)
    if isinstance(mail, WebhookMail):
        return webhook_mail.message(mail, FRAME)
    return message(mail, FRAME)
