"""The addresses of accounts: how they are written, stored and compared."""

from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.kit.mail import NoAddress, envelope_address
from holdfast.kit.said import said

Email = Annotated[
    str,
    Meta(
        pattern=r"^[^@\s\x00]+@[^@\s\x00]+\.[^@\s\x00]+$(?!\n)",
        max_length=254,
        description="E-mail address.",
        extra={"noun": said("an e-mail address such as ann@example.com")},
    ),
]


def canonical(email: str) -> str:
    """An e-mail address in the form in which it is stored and compared."""
    return email.strip().lower()


def usable(email: str) -> str | None:
    """The address as it is stored; None if it is no address, or none that mails can be sent to."""
    try:
        written = msgspec.convert(canonical(email), Email)
        envelope_address(written)
    except (msgspec.ValidationError, NoAddress):
        return None
    return written
