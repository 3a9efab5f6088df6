"""The e-mail addresses of accounts: their form, and how they are stored and compared."""

from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.kit.contract.mail_addresses import NoAddress, envelope_address
from holdfast.kit.contract.messages import message

Email = Annotated[
    str,
    Meta(
        pattern=r"^[^@\s\x00]+@[^@\s\x00]+\.[^@\s\x00]+$(?!\n)",
        max_length=254,
        description="E-mail address.",
        extra={"noun": message("an e-mail address such as ann@example.com")},
    ),
]


def canonical(email: str) -> str:
    """Return an e-mail address in the form in which it is stored and compared."""
    return email.strip().lower()


def usable(email: str) -> str | None:
    """Return the address as it is stored; None if it is invalid, or mails cannot be sent to it."""
    try:
        written = msgspec.convert(canonical(email), Email)
        envelope_address(written)
    except (msgspec.ValidationError, NoAddress):
        return None
    return written
