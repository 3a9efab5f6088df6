"""Statements on organizers."""

from collections.abc import Sequence
from typing import LiteralString, NamedTuple

from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import IS_UNPROVED, User


class SignUpConflicts(NamedTuple):
    """What others have already: an organizer or admin the address, any account the slug."""

    has_email: bool
    has_slug: bool


async def find_conflicts(reader: Reader, email: str, slug: str) -> SignUpConflicts:
    """What others have already of a new organizer's address and slug."""
    [conflicts] = await reader.rows(
        SignUpConflicts,
        """
        select exists (select from users where email = %(email)s and role <> 'user') as has_email,
               exists (select from users where slug = %(slug)s) as has_slug
        """,
        {"email": email, "slug": slug},
    )
    return conflicts


async def insert_organizer(
    tx: Tx, public_id: str, name: str, email: str, slug: str, password_hash: str | None, registered_from: Sequence[str]
) -> int | None:
    """Insert an organizer. Returns its id; None if another request has just used the address or the slug.

    registered_from    hashes of the networks from which it is registered
    """
    return await tx.value(
        """
        insert into users (public_id, name, email, slug, role, password_hash, registered_from)
        values (%(public_id)s, %(name)s, %(email)s, %(slug)s, 'organizer', %(password_hash)s,
                nullif(%(registered_from)s::text[], '{}'))
        on conflict do nothing returning id
        """,
        {
            "public_id": public_id,
            "name": name,
            "email": email,
            "slug": slug,
            "password_hash": password_hash,
            "registered_from": list(registered_from),
        },
    )


async def make_organizer(tx: Tx, user_id: int, name: str, slug: str) -> None:
    """Make a person an organizer. Raises `UniqueViolation` of the index of the slug, or of organizers' addresses."""
    await tx.value(
        """
        update users set role = 'organizer', name = %(name)s, slug = %(slug)s
         where id = %(id)s and role = 'user' and proved_at is not null returning true
        """,
        {"id": user_id, "name": name, "slug": slug},
    )


async def lock_unproved(tx: Tx, user_id: int) -> str | None:
    """Lock an unproved organizer. Returns its address; None for any other account."""
    return await tx.value(f"select email from users where id = %(id)s and {IS_UNPROVED} for update", {"id": user_id})


async def end_organizer(tx: Tx, user_id: int, public_id: str, slug: str) -> None:
    """Remove the identity of an organizer, and replace its public id and slug."""
    await tx.run(
        """
        update users set role = 'user', email = null, name = null, slug = %(slug)s, password_hash = null,
                         public_id = %(public_id)s, data_link_at = null, data_link_holder = null, erased_at = now(),
                         accent = null, logo_key = null, about = null
         where id = %(id)s
        """,
        {"id": user_id, "slug": slug, "public_id": public_id},
    )


async def prove(tx: Tx, user_id: int) -> bool:
    """Store that the owner has confirmed the account. False if that was stored before."""
    proved = await tx.value(
        """
        update users set proved_at = now() where id = %(id)s and proved_at is null and erased_at is null returning true
        """,
        {"id": user_id},
    )
    return bool(proved)


async def forget_password(tx: Tx, user_id: int) -> None:
    await tx.run("update users set password_hash = null where id = %(id)s", {"id": user_id})


async def find_id(reader: Reader, slug: str) -> int | None:
    return await reader.value("select id from users where role = 'organizer' and slug = %(slug)s", {"slug": slug})


async def find_email(reader: Reader, slug: str) -> str | None:
    return await reader.value("select email from users where role = 'organizer' and slug = %(slug)s", {"slug": slug})


async def list_organizers(reader: Reader, seen_by: int | None, offset: int, limit: int) -> list[User]:
    theirs: LiteralString = "" if seen_by is None else "and id = %(seen_by)s"
    return await reader.rows(
        User,
        f"""
        select id, public_id, name, email, role, slug from users
         where role = 'organizer' {theirs}
         order by id offset %(offset)s limit %(limit)s
        """,
        {"seen_by": seen_by, "offset": offset, "limit": limit},
    )
