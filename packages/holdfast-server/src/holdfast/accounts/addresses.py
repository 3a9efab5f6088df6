"""The e-mail addresses of accounts: their form, and how they are stored and compared."""

from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.kit.contract.addresses import NoAddress, identity
from holdfast.kit.contract.messages import message, message_of

Email = Annotated[
    str,
    Meta(
        pattern=r"^[^@\s\x00]+@[^@\s\x00]+\.[^@\s\x00]+$(?!\n)",
        max_length=254,
        description="E-mail address.",
        extra={"noun": message("an e-mail address such as ann@example.com")},
    ),
]
"""A command with such a field has a rule that returns `address_error`."""


def canonical(email: str) -> str:
    """An address in the form in which it is stored and compared.

    A text that is not an address, such as a part of one in a search, is only brought into small letters.
    """
    try:
        return identity(email)
    except NoAddress:
        return email.strip().lower()


def address_error(email: str) -> str | None:
    """Why mails cannot be sent to an address, as a message that begins with a verb; None if they can."""
    try:
        identity(email)
    except NoAddress as error:
        return message_of(error)
    return None


def usable(email: str) -> str | None:
    """The address as it is stored; None if it is invalid, or mails cannot be sent to it."""
    try:
        return msgspec.convert(identity(email), Email)
    except (msgspec.ValidationError, NoAddress):
        return None
