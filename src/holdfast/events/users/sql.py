"""Statements on users."""

from holdfast.events.resources import Reader
from holdfast.events.users.model import User


async def list_users(reader: Reader, offset: int, limit: int) -> list[User]:
    return await reader.rows(
        User,
        "select id, name, email, role, slug from users order by id offset %(offset)s limit %(limit)s",
        {"offset": offset, "limit": limit},
    )


async def list_users_seen_by(reader: Reader, organizer_id: int, offset: int, limit: int) -> list[User]:
    """The organizer, and everyone who holds a place at one of its events."""
    return await reader.rows(
        User,
        """
        select id, name, email, role, slug
          from users
          join (select %(organizer_id)s::bigint as id
                union
                select user_id from registrations join events on events.id = registrations.event_id
                 where events.organizer_id = %(organizer_id)s
                   and registrations.status in ('registered', 'waitlisted')) as seen using (id)
         order by id offset %(offset)s limit %(limit)s
        """,
        {"organizer_id": organizer_id, "offset": offset, "limit": limit},
    )
