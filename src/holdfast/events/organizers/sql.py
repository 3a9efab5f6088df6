"""Statements on organizers."""

from typing import LiteralString

from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import User


async def taken(reader: Reader, email: str, slug: str) -> tuple[bool, bool]:
    """Whether the address and the slug belong to someone already."""
    rows = await reader.tuples(
        """
        select exists (select from users where email = %(email)s), exists (select from users where slug = %(slug)s)
        """,
        {"email": email, "slug": slug},
    )
    return rows[0][0], rows[0][1]


async def insert_organizer(
    tx: Tx, public_id: str, name: str, email: str, slug: str, password_hash: str | None
) -> int | None:
    """The id of the new organizer, or None if another request has just taken the address or the slug."""
    return await tx.value(
        """
        insert into users (public_id, name, email, slug, role, password_hash)
        values (%(public_id)s, %(name)s, %(email)s, %(slug)s, 'organizer', %(password_hash)s)
        on conflict do nothing returning id
        """,
        {"public_id": public_id, "name": name, "email": email, "slug": slug, "password_hash": password_hash},
    )


async def slug_taken(reader: Reader, slug: str, user_id: int) -> bool:
    """Whether somebody else has the slug."""
    return await reader.value(
        "select exists (select from users where slug = %(slug)s and id <> %(id)s)", {"slug": slug, "id": user_id}
    )


async def make_organizer(tx: Tx, user_id: int, name: str, slug: str) -> None:
    await tx.run(
        """
        update users set role = 'organizer', name = %(name)s, slug = %(slug)s
         where id = %(id)s and role = 'user' and proved_at is not null
        """,
        {"id": user_id, "name": name, "slug": slug},
    )


async def has_password(reader: Reader, user_id: int) -> bool:
    return bool(await reader.value("select password_hash is not null from users where id = %(id)s", {"id": user_id}))


async def prove(tx: Tx, user_id: int) -> bool:
    """Note that the owner has said whose the keys and the password are. False if that was noted before."""
    proved = await tx.value(
        "update users set proved_at = now() where id = %(id)s and proved_at is null returning true", {"id": user_id}
    )
    return bool(proved)


async def forget_password(tx: Tx, user_id: int) -> None:
    await tx.run("update users set password_hash = null where id = %(id)s", {"id": user_id})


async def find_id(reader: Reader, slug: str) -> int | None:
    return await reader.value("select id from users where role = 'organizer' and slug = %(slug)s", {"slug": slug})


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
