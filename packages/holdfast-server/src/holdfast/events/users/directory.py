"""Users as accounts that sign in."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.accounts.addresses import usable_address
from holdfast.accounts.agents.requests import waiting_requests_count
from holdfast.accounts.directory import Account, StoredPassword
from holdfast.events.users.model import IS_UNPROVED, OWNS_EMAIL
from holdfast.events.users.operations import find_free_public_id
from holdfast.kit.postgres import database

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
