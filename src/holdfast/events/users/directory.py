"""The accounts of the events service, for those who sign in. An organizer acts for itself."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.accounts.directory import Account, Password
from holdfast.accounts.signin.addresses import usable
from holdfast.events.users.model import new_public_ids
from holdfast.kit.database import Reader, Tx

_ACCOUNT = """
    id, email, case when role = 'organizer' then id end as tenant_id, proved_at is not null as is_proved
"""


class UserDirectory:
    """The rows of `users`, by id and by address."""

    async def find(self, reader: Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        rows = await reader.rows(
            Account,
            f"select {_ACCOUNT} from users where id = any(%(ids)s) and email is not null",
            {"ids": list(ids)},
        )
        return {each.id: each for each in rows}

    async def find_password(self, reader: Reader[Any], email: str) -> Password | None:
        return await reader.row(
            Password,
            "select id as account_id, password_hash as hash from users where email = %(email)s",
            {"email": email},
        )

    async def still_has(self, tx: Tx[Any], password: Password) -> bool:
        found = await tx.value(
            "select true from users where id = %(account_id)s and password_hash = %(hash)s for share",
            msgspec.structs.asdict(password),
        )
        return bool(found)

    async def prove(self, tx: Tx[Any], email: str) -> Account:
        """The account with an address that was proved just now, made if there is none.

        Where keys or a password were made before, the owner is asked whose they are: only then the account is proved.
        """
        # One statement: between two, the account could be erased.
        account = await tx.row(
            Account,
            f"""
            insert into users (public_id, email, proved_at) values (%(public_id)s, %(email)s, now())
                on conflict (email) do update
               set proved_at = coalesce(users.proved_at, case when users.password_hash is null and not exists (
                       select from api_keys where user_id = users.id and active) then now() end)
            returning {_ACCOUNT}
            """,
            {"public_id": new_public_ids(1)[0], "email": email},
        )
        assert account
        return account

    def canonical(self, email: str) -> str | None:
        return usable(email)
