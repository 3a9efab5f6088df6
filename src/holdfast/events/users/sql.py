"""Statements on users."""

from holdfast.events.settings import Tx
from holdfast.events.users.model import User


async def list_users(tx: Tx, seen_by: int | None, offset: int, limit: int) -> list[User]:
    return await tx.rows(
        User,
        """
        select id, name, email, role, slug from users
         where %(seen_by)s::bigint is null
            or id = %(seen_by)s
            or id in (select user_id from registrations join events on events.id = registrations.event_id
                       where events.organizer_id = %(seen_by)s
                         and registrations.status in ('registered', 'waitlisted'))
         order by id offset %(offset)s limit %(limit)s
        """,
        {"seen_by": seen_by, "offset": offset, "limit": limit},
    )
