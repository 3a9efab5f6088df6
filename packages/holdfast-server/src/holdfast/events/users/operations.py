"""The operations on users."""

from typing import LiteralString

from holdfast.events.hand_over_conditions import of_organizer
from holdfast.events.resources import Reader
from holdfast.events.users.model import IS_KNOWN, PERSON_EMAIL, User, new_public_ids
from holdfast.kit.contract.caller import Caller
from holdfast.kit.postgres.pagination import OffsetPage, Page, offset_page

_REGISTERED: LiteralString = " union ".join(
    f"""
            (select distinct user_id as id from registrations
              where {condition}
              order by user_id limit %(offset)s::bigint + %(limit)s)"""
    for condition in of_organizer("status in ('registered', 'waitlisted')")
)


async def find_users(reader: Reader, offset: int, limit: int) -> list[User]:
    return await reader.rows(
        User,
        f"""
        select id, public_id, name, {PERSON_EMAIL} as email, role, slug from users
         order by id offset %(offset)s limit %(limit)s
        """,
        {"offset": offset, "limit": limit},
    )


async def list_users_seen_by(reader: Reader, seen_by: int, offset: int, limit: int) -> list[User]:
    """The organizer, and the people who have a place at its events, with the fields that the organizer may know."""
    return await reader.rows(
        User,
        f"""
        with known_user as (
            {_REGISTERED}),
        user_on_page as materialized (
            select id from known_user union select %(seen_by)s order by id offset %(offset)s limit %(limit)s)
        select users.id, public_id, case when {IS_KNOWN} then name end as name, {PERSON_EMAIL} as email,
               case when {IS_KNOWN} then role else 'user' end as role, case when {IS_KNOWN} then slug end as slug
          from user_on_page
         cross join (select %(seen_by)s::bigint as seen_by) as viewer
         cross join lateral (select * from users where users.id = user_on_page.id limit 1) as users
         order by users.id
        """,
        {"seen_by": seen_by, "offset": offset, "limit": limit},
    )


async def list_users(reader: Reader, caller: Caller, command: OffsetPage) -> Page[User]:
    """List users, oldest first.

    An admin key sees all. An organizer key sees its organizer and the people of its events.
    """
    offset, limit = command.offset, command.limit + 1
    if caller.tenant_id is None:
        return offset_page(await find_users(reader, offset, limit), command)
    return offset_page(await list_users_seen_by(reader, caller.tenant_id, offset, limit), command)


async def find_free_public_id(reader: Reader) -> str:
    """A random public id that no account has. With 14 million accounts, one of 80,000 random ids is taken."""
    public_id: str | None = None
    while public_id is None:
        public_id = await reader.value(
            """
            select candidate from unnest(%(candidates)s::text[]) as candidate
             where not exists (select from users where public_id = candidate) limit 1
            """,
            {"candidates": new_public_ids(3)},
        )
    return public_id
