"""Known browsers: those in which the owner of an address has signed in. Each has a random secret in a cookie.

A browser stays known for `KNOWN_DAYS`, even after its session has ended. If all access to an account is ended, all its
browsers are forgotten: a person who had access before must not count as the owner. Signing in with the address has a
rate limit of its own in a known browser.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.security.cookie_secrets import new_cookie_secret

KNOWN_DAYS = 90
"""Days for which a browser is known after the owner has signed in."""

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


class GetKnownBrowser(Command):
    """Asks whether the owner of an address has signed in in the browser that has a cookie."""

    email: str
    secret: str


async def is_known_browser(reader: Reader[Any], caller: Caller, command: GetKnownBrowser) -> bool:
    """Whether the owner of an address has signed in in a browser."""
    is_known = await reader.value(
        """
        select true from known_browsers where hash = %(hash)s and known_at > now() - make_interval(days => %(days)s)
        """,
        {"hash": _browser_digest(command.secret, command.email), "days": KNOWN_DAYS},
    )
    return bool(is_known)


async def note_browser(tx: Tx[Any], account_id: int, email: str) -> str:
    """Store that the owner of an address signs in. Returns the secret for the cookie."""
    secret = new_cookie_secret()
    await tx.run(
        "insert into known_browsers (hash, account_id) values (%(hash)s, %(account_id)s)",
        {"hash": _browser_digest(secret, email), "account_id": account_id},
    )
    return secret


async def forget_browsers_of(tx: Tx[Any], account_ids: Sequence[int]) -> None:
    """Delete the known browsers of some accounts."""
    await tx.run("delete from known_browsers where account_id = any(%(ids)s)", {"ids": [*account_ids]})


def _browser_digest(secret: str, email: str) -> bytes:
    return hashlib.sha256(f"{secret} {email}".encode()).digest()


async def forget_browsers(tx: Tx[Any]) -> int:
    """Delete a batch of the browsers that are no longer known. Returns how many were deleted."""
    return await tx.value(
        """
        with deleted as (
            delete from known_browsers where hash in (
                select hash from known_browsers
                 where known_at < now() - make_interval(days => %(days)s) limit %(batch_size)s)
            returning 1)
        select count(*) from deleted
        """,
        {"batch_size": DELETE_BATCH_SIZE, "days": KNOWN_DAYS},
    )
