"""Signed links to one's own data. They are sent to the address of the account, and to no other.

A link names the moment at which it was made, which the account has stored: only the last one works, for an hour.
"""

import re
from typing import NamedTuple

from holdfast.events.settings import Settings
from holdfast.kit.secrets import Secret

PATH = "/people"

DIGITS = 32
"""Of a signature: it makes links short, and has 128 bits."""

_LINK = re.compile(r"([a-z2-7]{8})-([1-9][0-9]{0,17})-([0-9a-f]{32})")


class DataLink(NamedTuple):
    """What a valid link says.

    user_id    the public id of the person
    issued     when it was made, in microseconds
    """

    user_id: str
    issued: int


def path(secret: Secret, link: DataLink) -> str:
    """The path of the page behind a link."""
    text = f"{link.user_id}-{link.issued}"
    return f"{PATH}/{text}-{secret.signer('own data', DIGITS).sign(text)}"


def url(settings: Settings, secret: Secret, link: DataLink) -> str:
    """The address of the page behind a link."""
    return settings.base_url + path(secret, link)


def read(secret: Secret, text: str) -> DataLink | None:
    """The link in a text, or None if this service did not write the text."""
    parts = _LINK.fullmatch(text)
    if parts is None:
        return None
    user_id, issued, signature = parts.groups()
    if not secret.signer("own data", DIGITS).accepts(f"{user_id}-{issued}", signature):
        return None
    return DataLink(user_id, int(issued))
