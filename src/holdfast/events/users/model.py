"""People: students, organizers, admins."""

import base64
import os
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.kit.said import said

A_SLUG = said("3 to 100 of the characters a-z, 0-9 and -")

PublicId = Annotated[
    str,
    Meta(
        pattern=r"^[a-z2-7]{8}$(?!\n)",
        description="Public id: an 8-character handle.",
        extra={"noun": said("a public id: 8 of the characters a-z and 2-7")},
    ),
]
Role = Literal["user", "organizer", "admin"]


Name = Annotated[str | None, Meta(description="null where it is not known to you.")]

KNOWN: LiteralString = "(seen_by is null or users.id = seen_by or users.role = 'user')"
"""Whether name, slug and role in a row of `users` are known to the organizer in the column `seen_by`; null is an admin.

An organizer knows its own account. Of another organizer who is registered for its events, it knows only the address.
"""


EMAIL: LiteralString = "coalesce(users.email, 'erased-' || users.public_id || '@erased.invalid')"
"""The address in a row of `users`. People whose data was erased have none; this one, which cannot exist, stands for it.
"""

EmailShown = Annotated[
    str, Meta(description="E-mail address; `erased-<user_id>@erased.invalid` of people whose data was erased.")
]


class User(Struct):
    """Someone with an account."""

    id: int
    public_id: PublicId
    name: Name
    email: EmailShown
    role: Role
    slug: Annotated[str | None, Meta(description="Organizer path namespace.")]


def new_public_ids(count: int) -> list[str]:
    """Random public ids of 40 bits each. They can be neither guessed nor used to count users."""
    letters = base64.b32encode(os.urandom(5 * count)).decode().lower()
    return [letters[start : start + 8] for start in range(0, 8 * count, 8)]
