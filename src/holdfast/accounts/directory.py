"""What a service tells this package about its accounts."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from holdfast.kit.database import Reader, Tx


class Account(Struct, frozen=True):
    """Somebody's account.

    tenant_id    the tenant that the account may act for; None: it has none yet
    is_proved    whether its owner has proved the address, and kept or ended what had been made before
    """

    id: int
    email: str
    tenant_id: int | None
    is_proved: bool


class Password(Struct, frozen=True):
    """The account with an address, and the hash of its password; None: it has no password."""

    account_id: int
    hash: str | None


class Directory(Protocol):
    """The accounts of a service."""

    async def find(self, reader: Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        """The accounts that have these ids, by id."""
        ...

    async def find_password(self, reader: Reader[Any], email: str) -> Password | None:
        """The password of the account with an address; None if no account has the address."""
        ...

    async def still_has(self, tx: Tx[Any], password: Password) -> bool:
        """Whether an account has the password that was found. If so, nobody changes it until the transaction ends."""
        ...

    async def prove(self, tx: Tx[Any], email: str) -> Account | None:
        """The account with an address whose owner has just proved it.

        It is made if there is none; None where accounts are not made by signing in.
        """
        ...

    def canonical(self, email: str) -> str | None:
        """The address as it is stored; None if it is no address."""
        ...
