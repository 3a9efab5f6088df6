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
        with registered as (
            select distinct user_id as id from registrations
             where organizer_id = %(seen_by)s and status in ('registered', 'waitlisted')
             order by user_id limit %(offset)s::bigint + %(limit)s),
        page as materialized (
            select id from registered union select %(seen_by)s order by id offset %(offset)s limit %(limit)s)
        select users.id, public_id, case when {KNOWN} then name end as name, {EMAIL} as email,
               case when {KNOWN} then role else 'user' end as role, case when {KNOWN} then slug end as slug
          from page
         cross join (select %(seen_by)s::bigint as seen_by) as reader
         cross join lateral (select * from users where users.id = page.id limit 1) as users
         order by users.id
        """,
        {"seen_by": seen_by, "offset": offset, "limit": limit},
    )
