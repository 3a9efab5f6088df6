"""Writes mails. That takes milliseconds each, so a subprocess does it (`sending.py`). It starts while a mail is waited
for, so this file imports little.
"""

from pathlib import Path

from msgspec import Struct

from holdfast import accounts
from holdfast.accounts.signin import mail as sign_in
from holdfast.accounts.signin.mail import SignInMail
from holdfast.inventory.mails import low_stock
from holdfast.inventory.mails.low_stock import LowStockMail
from holdfast.kit.mail.message import MailMessage
from holdfast.kit.pages.layout import Frame

FRAME = Frame("Holdfast Inventory", Path(__file__).parent, accounts.FOLDER)

MailOrder = SignInMail | LowStockMail
"""A mail to be written, with all data for it. It has no secret."""


class MailBatch(Struct):
    """Mails that are written together."""

    sender: str
    orders: list[MailOrder]


def write(portion: MailBatch) -> list[bytes]:
    """The content of each mail, as it is sent."""
    return [_message(order).encoded(portion.sender) for order in portion.orders]


def _message(order: MailOrder) -> MailMessage:
    if isinstance(order, SignInMail):
        return sign_in.message(order, FRAME)
    return low_stock.message(order, FRAME)
