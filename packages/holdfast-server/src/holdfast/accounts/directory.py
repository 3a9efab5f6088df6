"""The interface through which this package reads and changes the accounts of a service."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from holdfast.kit.postgres.database import Reader, Tx


class Account(Struct, frozen=True):
    """An account of a person.

    tenant_id    the tenant that the account may act for; None: it has none yet
    is_proved    whether its owner has proved the address, and has kept or ended what was made before that
    requests     how many requests of agents wait for a person of the tenant, where the account is looked up
    """

    id: int
    email: str
    tenant_id: int | None
    is_proved: bool
    requests: int = 0


class StoredPassword(Struct, frozen=True):
    """The id of the account with an address, and the hash of its password; None: it has no password."""

    account_id: int
    hash: str | None


class Directory(Protocol):
    """The accounts of a service."""

    async def find(self, reader: Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        """The accounts that have these ids, by id, with the number of requests that wait."""
        ...

    async def find_password(self, reader: Reader[Any], email: str) -> StoredPassword | None:
        """The password of the account with an address; None if no account has the address."""
        ...

    async def still_has(self, tx: Tx[Any], password: StoredPassword) -> bool:
        """Whether an account still has a password. If so, the password is locked until the transaction ends."""
        ...

    async def prove(self, tx: Tx[Any], email: str, language: str | None = None) -> Account | None:
        """Mark the account with an address as proved by its owner, and return it.

        A service may store the language in which its owner reads, for mails.

        The account is made if there is none. Returns None where accounts are not made by signing in.
        """
        ...

    def canonical(self, email: str) -> str | None:
        """The address as it is stored; None if it is not an address."""
        ...
