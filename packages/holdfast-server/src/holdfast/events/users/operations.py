"""The operations on users, their statements, and users as accounts that sign in."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import msgspec

from holdfast.accounts.addresses import usable_address
from holdfast.accounts.agents.requests import waiting_requests_count
from holdfast.accounts.directory import Account, StoredPassword
from holdfast.events.hand_over_conditions import of_organizer
from holdfast.events.resources import Reader
from holdfast.events.users.model import IS_KNOWN, IS_UNPROVED, OWNS_EMAIL, PERSON_EMAIL, User, new_public_ids
from holdfast.kit.contract.caller import Caller
from holdfast.kit.postgres import database
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


_ACCOUNT = """
    id, email, case when role = 'organizer' then id end as tenant_id, proved_at is not null as is_proved
"""


class UserDirectory:
    """The rows of `users`, by id and by address."""

    async def find(self, reader: database.Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        rows = await reader.rows(
            Account,
            f"""
            select {_ACCOUNT}, {waiting_requests_count("users.id")} as requests from users
             where id = any(%(ids)s) and email is not null
            """,
            {"ids": list(ids)},
        )
        return {account.id: account for account in rows}

    async def find_password(self, reader: database.Reader[Any], email: str) -> StoredPassword | None:
        return await reader.row(
            StoredPassword,
            # Only organizers have one, and their addresses are unique among them.
            "select id as account_id, password_hash as hash from users where email = %(email)s and role <> 'user'",
            {"email": email},
        )

    async def still_has(self, tx: database.Tx[Any], password: StoredPassword) -> bool:
        matches = await tx.value(
            "select true from users where id = %(account_id)s and password_hash = %(hash)s for share",
            msgspec.structs.asdict(password),
        )
        return bool(matches)

    async def prove(self, tx: database.Tx[Any], email: str, language: str | None = None) -> Account:
        """The account with an address that was just proved; inserted if there is none.

        An unproved organizer with the address comes first, and stays unproved: the owner of the address is asked
        whether the organizer is theirs.
        """
        # The lock lasts until the session has begun: meanwhile the account is not erased.
        organizer = await tx.row(
            Account,
            f"select {_ACCOUNT} from users where email = %(email)s and {IS_UNPROVED} for no key update",
            {"email": email},
        )
        if organizer:
            return organizer
        public_id = await find_free_public_id(tx)
        # One statement: between two, the account could be erased.
        account = await tx.row(
            Account,
            f"""
            insert into users (public_id, email, proved_at) values (%(public_id)s, %(email)s, now())
                on conflict (email) where {OWNS_EMAIL} do update set proved_at = coalesce(users.proved_at, now())
            returning {_ACCOUNT}
            """,
            {"public_id": public_id, "email": email},
        )
        assert account
        return account

    def canonical(self, email: str) -> str | None:
        return usable_address(email)
