"""Statements on the subjects of authorization servers."""

from typing import LiteralString

from holdfast.events.oauth.model import LinkableAccount, LinkedSubject, fingerprint
from holdfast.events.resources import Reader, Tx

_ACCOUNT: LiteralString = "users.id, slug, role, proved_at is not null as is_proved"


async def find_account(tx: Tx, email: str) -> LinkableAccount | None:
    """Lock the organizer or admin with an address: until the transaction ends, no other can link a subject to it."""
    return await tx.row(
        LinkableAccount,
        f"select {_ACCOUNT} from users where email = %(email)s and role <> 'user' for no key update",
        {"email": email},
    )


async def find_organizer(tx: Tx, slug: str) -> LinkableAccount | None:
    """Lock the organizer with a slug: until the transaction ends, no other can link a subject to it."""
    return await tx.row(
        LinkableAccount,
        f"select {_ACCOUNT} from users where slug = %(slug)s and role = 'organizer' for no key update",
        {"slug": slug},
    )


async def link_by_email(tx: Tx, issuer: str, subject: str, user_id: int, email: str) -> bool:
    """Link a subject to an organizer, if the subject has never been linked and the organizer has none of the issuer.

    Returns whether it was linked now.
    """
    linked = await tx.value(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id, email)
        select %(hash)s, %(issuer)s, %(subject)s, %(user_id)s, %(email)s
         where not exists (select from oauth_subjects where user_id = %(user_id)s and issuer = %(issuer)s)
            on conflict (hash) do nothing
        returning true
        """,
        {
            "hash": fingerprint(issuer, subject),
            "issuer": issuer,
            "subject": subject,
            "user_id": user_id,
            "email": email,
        },
    )
    return bool(linked)


async def link(tx: Tx, issuer: str, subject: str, user_id: int, *, move: bool) -> None:
    """Link a subject to an organizer. A link to another organizer changes only with `move`."""
    await tx.run(
        """
        insert into oauth_subjects (hash, issuer, subject, user_id)
        values (%(hash)s, %(issuer)s, %(subject)s, %(user_id)s)
            on conflict (hash) do update set user_id = excluded.user_id, email = null, since = now()
             where oauth_subjects.user_id is null or %(move)s and oauth_subjects.user_id <> excluded.user_id
        """,
        {"hash": fingerprint(issuer, subject), "issuer": issuer, "subject": subject, "user_id": user_id, "move": move},
    )


async def find_linked(reader: Reader, hash: bytes) -> LinkableAccount | None:
    """The account to which a subject is linked."""
    return await reader.row(
        LinkableAccount,
        f"""
        select {_ACCOUNT} from oauth_subjects join users on users.id = oauth_subjects.user_id
         where hash = %(hash)s
        """,
        {"hash": hash},
    )


async def is_known(reader: Reader, hash: bytes) -> bool:
    """Whether a subject is linked, or was linked before."""
    return bool(await reader.value("select true from oauth_subjects where hash = %(hash)s", {"hash": hash}))


async def unlink(tx: Tx, hash: bytes) -> None:
    await tx.run(
        "update oauth_subjects set user_id = null, email = null, since = now() where hash = %(hash)s", {"hash": hash}
    )


async def move_subjects(tx: Tx, old: int, new: int) -> list[bytes]:
    """Link the subjects of one account to another. Returns their hashes."""
    rows = await tx.tuples(
        "update oauth_subjects set user_id = %(new)s where user_id = %(old)s returning hash", {"old": old, "new": new}
    )
    return [hash for (hash,) in rows]


async def unlink_all(tx: Tx, user_id: int) -> list[bytes]:
    """End the links of all subjects of an account. Returns their hashes."""
    rows = await tx.tuples(
        """
        update oauth_subjects set user_id = null, email = null, since = now() where user_id = %(user_id)s returning hash
        """,
        {"user_id": user_id},
    )
    return [hash for (hash,) in rows]


async def list_subjects(reader: Reader, user_id: int) -> list[LinkedSubject]:
    return await reader.rows(
        LinkedSubject,
        """
        select issuer, subject, email, since from oauth_subjects where user_id = %(user_id)s
         order by since, issuer, subject
        """,
        {"user_id": user_id},
    )
