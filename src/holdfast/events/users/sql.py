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
            or exists (select from registrations
                         join events on events.id = registrations.event_id
                        where registrations.user_id = users.id
                          and registrations.status in ('registered', 'waitlisted')
                          and events.organizer_id = %(seen_by)s)
         order by id offset %(offset)s limit %(limit)s
        """,
        {"seen_by": seen_by, "offset": offset, "limit": limit},
    )
