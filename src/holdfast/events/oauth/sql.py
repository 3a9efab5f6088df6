"""Statements on the subjects of authorization servers."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.events.oauth.model import Account, LinkedSubject, fingerprint
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


async def find_account(tx: Tx, email: str) -> Account | None:
    """The account with an address. Until the end of the transaction nobody else links a subject to it."""
    return await tx.row(
        Account, "select id, slug, role from users where email = %(email)s for no key update", {"email": email}
    )


async def find_organizer(tx: Tx, slug: str) -> Account | None:
    """The organizer with a slug. Until the end of the transaction nobody else links a subject to it."""
    return await tx.row(
        Account,
        "select id, slug, role from users where slug = %(slug)s and role = 'organizer' for no key update",
        {"slug": slug},
    )


async def link_by_email(tx: Tx, issuer: str, subject: str, user_id: int, email: str) -> None:
    """Link a subject that has never been linked to an organizer that has no subject of the issuer; nothing else."""
    await tx.run(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id, email)
        select %(hash)s, %(issuer)s, %(subject)s, %(user_id)s, %(email)s
         where not exists (select from oauth_subjects where user_id = %(user_id)s and issuer = %(issuer)s)
            on conflict (hash) do nothing
        """,
        {
            "hash": fingerprint(issuer, subject),
            "issuer": issuer,
            "subject": subject,
            "user_id": user_id,
            "email": email,
        },
    )


async def link(tx: Tx, issuer: str, subject: str, user_id: int, *, move: bool) -> None:
    """Link a subject to an organizer. Where it is linked to another one already it stays, unless it is to be moved."""
    await tx.run(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id)
        values (%(hash)s, %(issuer)s, %(subject)s, %(user_id)s)
            on conflict (hash) do update set user_id = excluded.user_id, email = null, since = now()
             where oauth_subjects.user_id is null or %(move)s and oauth_subjects.user_id <> excluded.user_id
        """,
        {"hash": fingerprint(issuer, subject), "issuer": issuer, "subject": subject, "user_id": user_id, "move": move},
    )


async def find_linked(tx: Tx, hash: bytes) -> Account | None:
    """The account that a subject is linked to."""
    return await tx.row(
        Account,
        """
        select users.id, slug, role from oauth_subjects join users on users.id = oauth_subjects.user_id
         where hash = %(hash)s
        """,
        {"hash": hash},
    )


async def is_known(tx: Tx, hash: bytes) -> bool:
    """Whether a subject is linked, or was."""
    return bool(await tx.value("select true from oauth_subjects where hash = %(hash)s", {"hash": hash}))


async def unlink(tx: Tx, hash: bytes) -> None:
    await tx.run(
        "update oauth_subjects set user_id = null, email = null, since = now() where hash = %(hash)s", {"hash": hash}
    )


async def list_subjects(tx: Tx, user_id: int) -> list[LinkedSubject]:
    return await tx.rows(
        LinkedSubject,
        """
        select issuer, subject, email, since from oauth_subjects where user_id = %(user_id)s
         order by since, issuer, subject
        """,
        {"user_id": user_id},
    )
