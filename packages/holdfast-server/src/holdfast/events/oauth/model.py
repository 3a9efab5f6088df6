"""The claims of access tokens, and the accounts that their subjects are linked to."""

from datetime import datetime
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.events.users.model import SLUG_NOUN, Role
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.messages import translatable

SCOPES = {
    "read_events": translatable("View events, prices, registrations and the people in them."),
    "write_events": translatable("Publish and change events, and register people."),
    "manage_keys": translatable(
        "Create, view and revoke API keys. Allow this only to an agent that you trust: a new key can do everything, "
        "until you revoke it."
    ),
}
"""The scopes of access tokens, each with the actions it allows. API keys have none: they may do everything."""

Slug = Annotated[
    str, Meta(pattern=r"^[a-z0-9-]{3,100}$(?!\n)", description="The organizer's.", extra={"noun": SLUG_NOUN})
]

Subject = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=255,
        pattern=r"^[^\x00-\x1f\x7f-\x9f]+$(?!\n)",
        extra={"noun": "one line of text"},
        description="A person or program, as an authorization server names it in the claim `sub`.",
    ),
]


class AccessClaims(Struct, frozen=True):
    """The claims of a verified access token that the service uses.

    subject       the subject it was issued for
    scopes        its scopes that are in `SCOPES`
    email         canonical; None unless the authorization server says that it verified it
    expires_at    seconds since 1970
    """

    subject: str
    scopes: frozenset[str]
    email: str | None
    expires_at: float


class LinkSubject(Command):
    slug: Slug
    subject: Subject
    move: Annotated[bool, Meta(description="Take it from the organizer it is linked to.")] = False


class UnlinkSubject(Command):
    subject: Subject


class ListSubjects(Command):
    slug: Slug


class LinkedSubject(Struct, frozen=True):
    """A subject that acts for an organizer.

    email    the verified address that created the link; None if an operator created it
    """

    issuer: str
    subject: str
    email: str | None
    since: datetime


class LinkableAccount(Struct, frozen=True):
    """An account, with the fields that decide whether a subject may be linked to it: only organizers may be linked.

    is_proved    whether the owner of its address has confirmed it
    """

    id: int
    slug: str | None
    role: Role
    is_proved: bool

    @property
    def is_organizer(self) -> bool:
        return self.role == "organizer"


def fingerprint(issuer: str, subject: str) -> bytes:
    """The hash that identifies a subject. Neither argument contains a line feed, so the hash is unambiguous."""
    return sha256(f"{issuer}\n{subject}".encode()).digest()
