"""The accounts of merchants, for those who sign in. They act for their shop."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accounts.directory import Account, Password
from holdfast.accounts.signin.addresses import usable
from holdfast.inventory.merchants import sql
from holdfast.kit.database import Reader, Tx


class MerchantDirectory:
    """The rows of `merchants`. They have no passwords, and nobody makes one by signing in."""

    async def find(self, reader: Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        return {each.id: each for each in await sql.find(reader, ids)}

    async def find_password(self, reader: Reader[Any], email: str) -> Password | None:
        return None

    async def still_has(self, tx: Tx[Any], password: Password) -> bool:
        return False

    async def prove(self, tx: Tx[Any], email: str) -> Account | None:
        return await sql.prove(tx, email)

    def canonical(self, email: str) -> str | None:
        return usable(email)
