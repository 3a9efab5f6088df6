"""Statements on users."""

from holdfast.events.resources import Reader
from holdfast.events.users.model import EMAIL, KNOWN, User


async def list_users(reader: Reader, offset: int, limit: int) -> list[User]:
    return await reader.rows(
        User,
        f"""
        select id, public_id, name, {EMAIL} as email, role, slug from users
         order by id offset %(offset)s limit %(limit)s
        """,
        {"offset": offset, "limit": limit},
    )


async def list_users_seen_by(reader: Reader, seen_by: int, offset: int, limit: int) -> list[User]:
    """The organizer, and everyone who holds a place at one of its events; of each, what the organizer may know."""
    return await reader.rows(
        User,
        f"""
        select id, public_id, case when {KNOWN} then name end as name, {EMAIL} as email,
               case when {KNOWN} then role else 'user' end as role, case when {KNOWN} then slug end as slug
          from users
         cross join (select %(seen_by)s::bigint as seen_by) as reader
          join (select %(seen_by)s::bigint as id
                union
                select user_id from registrations join events on events.id = registrations.event_id
                 where events.organizer_id = %(seen_by)s
                   and registrations.status in ('registered', 'waitlisted')) as seen using (id)
         order by id offset %(offset)s limit %(limit)s
        """,
        {"seen_by": seen_by, "offset": offset, "limit": limit},
    )
