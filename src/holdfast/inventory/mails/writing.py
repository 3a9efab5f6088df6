"""Writes mails. That takes milliseconds each, so it is done in another process (`sending.py`), which starts when
somebody waits for a mail already: this file imports little.
"""

from pathlib import Path

from msgspec import Struct

from holdfast import accounts
from holdfast.accounts.signin import mail as sign_in
from holdfast.accounts.signin.mail import SignInMail
from holdfast.inventory.mails import low_stock
from holdfast.inventory.mails.low_stock import LowStockMail
from holdfast.kit.mail import Message
from holdfast.kit.pages.frame import Frame

FRAME = Frame("Holdfast Inventory", Path(__file__).parent, accounts.FOLDER)

Order = SignInMail | LowStockMail
"""A mail to be written, with all that is needed for it. No secret is among it."""


class Portion(Struct):
    """Mails that are written together."""

    sender: str
    orders: list[Order]


def write(portion: Portion) -> list[bytes]:
    """The content of each mail, as it is sent."""
    return [_message(order).encoded(portion.sender) for order in portion.orders]


def _message(order: Order) -> Message:
    if isinstance(order, SignInMail):
        return sign_in.message(order, FRAME)
    return low_stock.message(order, FRAME)
