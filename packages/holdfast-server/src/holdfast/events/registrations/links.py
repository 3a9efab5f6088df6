"""Signed links to one registration: to the person's own page, and to the page that the visitor of a form may see.

A link names the arrival number of the registration. So it becomes invalid when the person is registered again. Links
cannot be guessed, and one kind is not valid as the other: the first is mailed to the registered address, the second is
shown to the visitor who typed that address.
"""

import re
from typing import Literal, NamedTuple

from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.security.service_secret import Secret

LinkKind = Literal["own registrations", "outcomes"]
OWN_PAGE: LinkKind = "own registrations"
OUTCOME_PAGE: LinkKind = "outcomes"

REGISTRATIONS_PATH = "/registrations"

SIGNATURE_DIGITS = 32
"""Hexadecimal digits of a signature: links stay short, and the signature has 128 bits."""

_LINK = re.compile(r"([1-9][0-9]{0,17})-([a-z2-7]{8})-([1-9][0-9]{0,17})-([0-9a-f]{32})")


class Link(NamedTuple):
    """The content of a valid link.

    public_id    the public id of the person
    """

    event_id: int
    public_id: str
    arrival: int


class OwnRegistrationCommand(Command):
    """Names a registration by the fields of its link."""

    event_id: Id
    public_id: str
    arrival: Id


def own_url(settings: Settings, secret: Secret, event_id: int, public_id: str, arrival: int) -> str:
    """The address of the person's own page of a registration, on which it is shown and can be cancelled.

    `<address>/unsubscribe` stops its mails. Only the person may have it: send it to the registered address only.
    """
    return f"{settings.base_url}{REGISTRATIONS_PATH}/{write(secret, OWN_PAGE, Link(event_id, public_id, arrival))}"


def outcome_path(secret: Secret, link: Link, *, framed: bool = False) -> str:
    """The path of the page that tells the visitor of a form the result."""
    return f"{REGISTRATIONS_PATH}/{write(secret, OUTCOME_PAGE, link)}/outcome{'/embed' if framed else ''}"


def write(secret: Secret, kind: LinkKind, link: Link) -> str:
    """The link as text for an address."""
    text = f"{link.event_id}-{link.public_id}-{link.arrival}"
    return f"{text}-{secret.signer(kind, SIGNATURE_DIGITS).sign(text)}"


def valid_texts(secret: Secret, kind: LinkKind, link: Link) -> list[str]:
    """All valid texts of a link: while the secret of the service is being replaced, also the text of the old secret."""
    text = f"{link.event_id}-{link.public_id}-{link.arrival}"
    return [f"{text}-{signature}" for signature in secret.signer(kind, SIGNATURE_DIGITS).every(text)]


def read(secret: Secret, kind: LinkKind, text: str) -> Link | None:
    """The link in a text; None if this service did not write the text as a link of this kind."""
    parts = _LINK.fullmatch(text)
    if parts is None:
        return None
    event_id, public_id, arrival, signature = parts.groups()
    if not secret.signer(kind, SIGNATURE_DIGITS).accepts(f"{event_id}-{public_id}-{arrival}", signature):
        return None
    return Link(int(event_id), public_id, int(arrival))


async def require_link(secret: Secret, kind: LinkKind, text: str, limits: Limits, caller: Caller) -> Link:
    """The link in the address of a request. Raises `not_found` if its signature is wrong, and `rate_limited`."""
    link = read(secret, kind, text)
    if link is None:
        await limits.hit("wrong links", caller.name)
        raise NOT_FOUND()
    return link
