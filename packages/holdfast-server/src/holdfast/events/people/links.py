"""Signed links to a person's own data. They are sent only to the address of the account.

A link names the time at which it was made, which the account has stored: only the last link works, for an hour.
"""

import re
from typing import NamedTuple

from holdfast.events.settings import Settings
from holdfast.kit.security.secrets import Secret

PATH = "/people"

SIGNATURE_DIGITS = 32
"""Hexadecimal digits of a signature: links stay short, and the signature has 128 bits."""

_LINK = re.compile(r"([a-z2-7]{8})-([1-9][0-9]{0,17})-([0-9a-f]{32})")


class DataLink(NamedTuple):
    """The content of a valid link.

    user_id    the public id of the person
    issued     the time at which it was made, in microseconds
    """

    user_id: str
    issued: int


def path(secret: Secret, link: DataLink) -> str:
    """The path of the page behind a link."""
    text = f"{link.user_id}-{link.issued}"
    return f"{PATH}/{text}-{secret.signer('own data', SIGNATURE_DIGITS).sign(text)}"


def url(settings: Settings, secret: Secret, link: DataLink) -> str:
    """The address of the page behind a link."""
    return settings.base_url + path(secret, link)


def read(secret: Secret, text: str) -> DataLink | None:
    """The link in a text; None if this service did not write the text."""
    parts = _LINK.fullmatch(text)
    if parts is None:
        return None
    user_id, issued, signature = parts.groups()
    if not secret.signer("own data", SIGNATURE_DIGITS).accepts(f"{user_id}-{issued}", signature):
        return None
    return DataLink(user_id, int(issued))
