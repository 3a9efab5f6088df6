"""Statements on the subjects of authorization servers."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.events.oauth.model import Linked, fingerprint
from holdfast.events.settings import Tx
from holdfast.kit import database
from holdfast.kit.operation import Caller


async def find_callers(tx: database.Tx[Any], hashes: Sequence[bytes]) -> Mapping[bytes, Caller]:
    """The organizers that these subjects are linked to; nobody else is ever reached."""
    rows = await tx.tuples(
        """
        select hash, users.id from oauth_subjects join users on users.id = oauth_subjects.user_id
         where hash = any(%(hashes)s) and role = 'organizer'
        """,
        {"hashes": list(hashes)},
    )
    return {hash: Caller(0, user_id) for hash, user_id in rows}


async def link_by_email(tx: Tx, issuer: str, subject: str, email: str) -> int | None:
    """Link a subject to the organizer with an address; a link there is already stays. The organizer's id, if any."""
    return await tx.value(
        """
        with linked as (
            insert into oauth_subjects (hash, issuer, subject, user_id, email)
            select %(hash)s, %(issuer)s, %(subject)s, id, email
              from users where email = %(email)s and role = 'organizer'
                on conflict (hash) do update set hash = excluded.hash
            returning user_id)
        select users.id from linked join users on users.id = linked.user_id where role = 'organizer'
        """,
        {"hash": fingerprint(issuer, subject), "issuer": issuer, "subject": subject, "email": email},
    )


async def find_organizer(tx: Tx, slug: str) -> Linked | None:
    return await tx.row(
        Linked,
        "select id as user_id, slug from users where slug = %(slug)s and role = 'organizer' for share",
        {"slug": slug},
    )


async def link(tx: Tx, issuer: str, subject: str, user_id: int, *, move: bool) -> None:
    """Link a subject to an organizer. One it has already stays, unless it is to be moved."""
    await tx.run(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id)
        values (%(hash)s, %(issuer)s, %(subject)s, %(user_id)s)
            on conflict (hash) do update
               set user_id = excluded.user_id, email = null, linked_at = now()
             where %(move)s and oauth_subjects.user_id <> excluded.user_id
        """,
        {"hash": fingerprint(issuer, subject), "issuer": issuer, "subject": subject, "user_id": user_id, "move": move},
    )


async def find_link(tx: Tx, hash: bytes) -> Linked | None:
    return await tx.row(
        Linked,
        "select user_id, slug from oauth_subjects join users on users.id = user_id where hash = %(hash)s",
        {"hash": hash},
    )
