"""Public ids of accounts: random, so that they can be neither guessed nor used to count people."""

import base64
from os import urandom

from holdfast.events.resources import Reader


def new_public_ids(count: int) -> list[str]:
    """Random public ids of 40 bits each."""
    letters = base64.b32encode(urandom(5 * count)).decode().lower()
    return [letters[start : start + 8] for start in range(0, 8 * count, 8)]


async def find_free_public_id(reader: Reader) -> str:
    """A random public id that no account has. With 14 million accounts, one of 80,000 random ids is taken."""
    public_id: str | None = None
    while public_id is None:
        public_id = await reader.value(
            """
            select candidate from unnest(%(candidates)s::text[]) as candidate
             where not exists (select from users where public_id = candidate) limit 1
            """,
            {"candidates": new_public_ids(3)},
        )
    return public_id
