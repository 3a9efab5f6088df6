"""Organizer accounts."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.accounts.addresses import Email, address_error
from holdfast.events.keys.model import ApiKey
from holdfast.events.users.model import SLUG_NOUN
from holdfast.kit.contract.command import Command, NotBlank, rule
from holdfast.kit.contract.messages import message

RESERVED_SLUGS = frozenset(
    """
    about accents account admin agents api app assets billing blog catalog console contact demo docs embed events
    favicon healthz help holdfast home legal llms log login logout mail mails mcp media metrics new oauth openapi
    organizer organizers payments press pricing privacy queue queues readyz register registrations robots root security
    settings sign-in sign-out signin signout sitemap static status stripe support system terms test token uploads user
    users verify webhooks well-known www
    """.split()
)
"""Slugs that are reserved: the first segments of all paths of the service, and names that its operator could use."""


Name = Annotated[NotBlank, Meta(min_length=4, max_length=100, description="Name shown to the public.")]
Slug = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=100,
        pattern=r"^[a-z0-9-]+$(?!\n)",
        extra={"noun": SLUG_NOUN},
        description="Path namespace: lowercase a-z, 0-9 and dashes; unique.",
    ),
]


class RegisterOrganizer(Command):
    name: Name
    email: Email
    slug: Slug
    password: Annotated[
        Annotated[str, Meta(min_length=12, max_length=72)] | None,
        Meta(description="Omit it for an account that signs in by magic link."),
    ] = None

    @rule("email")
    def _can_get_mails(self) -> str | None:
        return address_error(self.email)

    @rule("slug")
    def _slug_is_free_to_take(self) -> str | None:
        return message("is reserved") if self.slug in RESERVED_SLUGS else None


class Organizer(Struct):
    """An organizer, with the page the public sees."""

    id: int
    name: str
    email: str
    role: Literal["organizer"]
    slug: str
    public_url: str
    public_path: Annotated[str, Meta(description="`/organizers/<slug>`")]


class Authentication(Struct):
    """How to use the key."""

    header: str
    note: str


class RegisteredOrganizer(Struct):
    """A new organizer and its first key."""

    authentication: Authentication
    api_key: ApiKey
    organizer: Organizer
