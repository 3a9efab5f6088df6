"""The accounts of merchants, for sign-in. Merchants act for their shop."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accounts.directory import Account, StoredPassword
from holdfast.accounts.signin.addresses import usable
from holdfast.inventory.merchants import sql
from holdfast.kit.postgres import database


class MerchantDirectory:
    """The rows of `merchants`. They have no passwords, and signing in adds no row."""

    async def find(self, reader: database.Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        return {merchant.id: merchant for merchant in await sql.find(reader, ids)}

    async def find_password(self, reader: database.Reader[Any], email: str) -> StoredPassword | None:
        return None

    async def still_has(self, tx: database.Tx[Any], password: StoredPassword) -> bool:
        return False

    async def prove(self, tx: database.Tx[Any], email: str) -> Account | None:
        return await sql.prove(tx, email)

    def canonical(self, email: str) -> str | None:
        return usable(email)
