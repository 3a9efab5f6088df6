"""People: registered people, organizers, admins. Public ids are random: they can be neither guessed nor counted."""

import base64
from os import urandom
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.kit.contract.messages import message

SLUG_NOUN = message("3 to 100 of the characters a-z, 0-9 and -")

PublicId = Annotated[
    str,
    Meta(
        pattern=r"^[a-z2-7]{8}$(?!\n)",
        description="8-character handle.",
        extra={"noun": message("a public id: 8 of the characters a-z and 2-7")},
    ),
]
Role = Literal["user", "organizer", "admin"]


Name = Annotated[str | None, Meta(description="null where it is not known to you.")]

IS_KNOWN: LiteralString = "(seen_by is null or users.id = seen_by or users.role = 'user')"
"""SQL condition: the organizer in the column `seen_by` may know name, slug and role in a row of `users`. Null: admin.

An organizer may know its own account. It may know only the address of another organizer who is registered for its
events.
"""


IS_UNPROVED: LiteralString = "users.role = 'organizer' and users.proved_at is null"
"""SQL condition: a row of `users` is an organizer with an unproved address: any visitor can register any address."""

OWNS_EMAIL: LiteralString = "(users.role <> 'organizer' or users.proved_at is not null)"
"""SQL condition: a row of `users` is the account of the person with its address: everything but an unproved organizer.
An address has at most one such account, and at most one unproved organizer. The unique index has this condition.
"""

ORGANIZER_CHANNEL: LiteralString = "organizers"
"""The channel on which triggers announce the slug of each organizer of whom an event, or the look, changes."""

PUBLIC_NAME: LiteralString = "case when organizers.proved_at is not null then organizers.name end"
"""The name of the organizer in a row of `users`, here `organizers`, as the public sees it.

Null until the owner of its address has confirmed it: any visitor can register a name and an address.
"""

PUBLIC_ACCENT: LiteralString = "case when organizers.proved_at is not null then organizers.accent end"
"""The accent of such an organizer, as its name; null: ours."""


PERSON_EMAIL: LiteralString = "coalesce(users.email, 'erased-' || users.public_id || '@erased.invalid')"
"""The address in a row of `users`. Erased people have none; a placeholder, which cannot exist, stands for it."""

EmailOrPlaceholder = Annotated[
    str, Meta(description="E-mail address; `erased-<user_id>@erased.invalid` of people whose data was erased.")
]


class User(Struct):
    """A person with an account."""

    id: int
    public_id: PublicId
    name: Name
    email: EmailOrPlaceholder
    role: Role
    slug: Annotated[str | None, Meta(description="Organizer path namespace.")]


def new_public_ids(count: int) -> list[str]:
    """Random public ids of 40 bits each."""
    letters = base64.b32encode(urandom(5 * count)).decode().lower()
    return [letters[start : start + 8] for start in range(0, 8 * count, 8)]
