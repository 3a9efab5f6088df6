"""Signed links to one registration: to the person's own page of it, and to what the visitor of a form may see of it.

A link names the arrival of the registration. So it is no longer valid when the person was registered anew. Nobody can
guess a link, and the two kinds cannot be exchanged: the first is sent to the address that was registered, the second is
shown to whoever typed that address.
"""

import re
from typing import Literal, NamedTuple

from holdfast.events.settings import Settings
from holdfast.kit.secrets import Secret

Kind = Literal["own registrations", "outcomes"]
OWN: Kind = "own registrations"
OUTCOME: Kind = "outcomes"

PATH = "/registrations"

DIGITS = 32
"""Of a signature: it makes links short, and has 128 bits."""

_LINK = re.compile(r"([1-9][0-9]{0,17})-([a-z2-7]{8})-([1-9][0-9]{0,17})-([0-9a-f]{32})")


class Link(NamedTuple):
    """What a valid link says.

    user_id    the public id of the person
    """

    event_id: int
    user_id: str
    arrival: int


def own_url(settings: Settings, secret: Secret, event_id: int, user_id: str, arrival: int) -> str:
    """The address of the person's own page of a registration: it shows the registration, and can cancel it.

    `<address>/unsubscribe` stops its mails. It is for the person alone: send it to the registered address only.
    """
    return f"{settings.base_url}{PATH}/{write(secret, OWN, Link(event_id, user_id, arrival))}"


def outcome_path(secret: Secret, link: Link, *, framed: bool = False) -> str:
    """The path of the page that tells the visitor of a form how it went."""
    return f"{PATH}/{write(secret, OUTCOME, link)}/outcome{'/embed' if framed else ''}"


def write(secret: Secret, kind: Kind, link: Link) -> str:
    """The link as text for an address."""
    text = f"{link.event_id}-{link.user_id}-{link.arrival}"
    return f"{text}-{secret.signer(kind, DIGITS).sign(text)}"


def every(secret: Secret, kind: Kind, link: Link) -> list[str]:
    """Every text of a link that is valid: while the secret of the service is exchanged, the old one's too."""
    text = f"{link.event_id}-{link.user_id}-{link.arrival}"
    return [f"{text}-{signature}" for signature in secret.signer(kind, DIGITS).every(text)]


def read(secret: Secret, kind: Kind, text: str) -> Link | None:
    """The link in a text, or None if this service did not write the text as a link of this kind."""
    parts = _LINK.fullmatch(text)
    if parts is None:
        return None
    event_id, user_id, arrival, signature = parts.groups()
    if not secret.signer(kind, DIGITS).accepts(f"{event_id}-{user_id}-{arrival}", signature):
        return None
    return Link(int(event_id), user_id, int(arrival))
