"""The e-mail addresses of accounts: their form, how they are stored and compared, and their older spellings.

Two accounts may have the same mailbox under two spellings. Only its owner can say what becomes of them, so they
stay as they are, and `holdfast check` names them.
"""

from functools import partial
from typing import Annotated, Any, LiteralString, NamedTuple

import msgspec
import structlog
from msgspec import Meta, Struct
from psycopg.errors import UniqueViolation

from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.contract.addresses import NoAddress, identity
from holdfast.kit.contract.messages import message, message_of
from holdfast.kit.postgres.database import Database, Reader, Tx

Email = Annotated[
    str,
    Meta(
        pattern=r"^[^@\s\x00]+@[^@\s\x00]+\.[^@\s\x00]+$(?!\n)",
        max_length=254,
        description="E-mail address.",
        extra={"noun": message("an e-mail address such as ann@example.com")},
    ),
]
"""A command with such a field has a rule that returns `address_error`."""


def canonical(email: str) -> str:
    """An address in the form in which it is stored and compared.

    A text that is not an address, such as a part of one in a search, is only brought into small letters.
    """
    try:
        return identity(email)
    except NoAddress:
        return email.strip().lower()


def address_error(email: str) -> str | None:
    """Why mails cannot be sent to an address, as a message that begins with a verb; None if they can."""
    try:
        identity(email)
    except NoAddress as error:
        return message_of(error)
    return None


def usable_address(email: str) -> str | None:
    """The address as it is stored; None if it is invalid, or mails cannot be sent to it."""
    try:
        return msgspec.convert(identity(email), Email)
    except (msgspec.ValidationError, NoAddress):
        return None


INTERVAL_SECONDS = 86_400.0
"""Seconds after which stored addresses are looked at again."""

LOCKED_INTERVAL_SECONDS = 60.0
"""Seconds after which they are looked at again if accounts were locked."""

MAX_ADDRESSES = 1_000
"""Addresses that are read at a time."""

UNUSUAL: LiteralString = r"(email !~ '^[a-z0-9._+-]+@([a-z0-9-]+[.])+[a-z]+$' or email like '%%xn--%%')"
"""Addresses that may differ from their identity."""

log = structlog.get_logger()


class UnifiedAddresses(NamedTuple):
    """How many addresses were stored as their identities, and how many not, since their accounts were locked."""

    stored_count: int
    locked_count: int


class UnusualAddress(Struct, frozen=True):
    """The stored address of an account."""

    id: int
    email: str

    @property
    def identity(self) -> str | None:
        """The form in which it should be stored; None if it is stored so, or if no mail can be sent to it."""
        try:
            normal = identity(self.email)
        except NoAddress:
            return None
        return None if normal == self.email else normal


def unifying_loop(table: LiteralString) -> Loop:
    """The loop that unifies the addresses of a table of accounts: at once, and then each day."""

    async def unify_addresses(database: Database[Any], _: RowWaiters) -> float:
        unified = await unify(database.across_tenants() if database.tenancy else database, table)
        return LOCKED_INTERVAL_SECONDS if unified.locked_count else INTERVAL_SECONDS

    return Loop("identities.unify_addresses", unify_addresses)


async def unify(database: Database[Any], table: LiteralString) -> UnifiedAddresses:
    """Store addresses as their identities, where no other account has them. Accounts that are locked are left out."""
    stored_count = locked_count = 0
    for address in await database.read(lambda reader: list_different(reader, table)):
        try:
            is_stored = await database.transact(partial(_store_identity, table=table, address=address))
        except UniqueViolation:
            log.warning("two accounts have one mailbox; see holdfast check", account=address.id)
        else:
            stored_count += is_stored
            locked_count += not is_stored
    return UnifiedAddresses(stored_count, locked_count)


async def _store_identity(tx: Tx[Any], table: LiteralString, address: UnusualAddress) -> bool:
    """Store the identity. False: the account is locked, or was changed."""
    rows = await tx.tuples(
        f"""
        update {table} set email = %(identity)s
         where id = (select id from {table} where id = %(id)s and email = %(email)s for no key update skip locked)
        returning id
        """,
        {"id": address.id, "email": address.email, "identity": address.identity},
    )
    return bool(rows)


async def list_different(reader: Reader[Any], table: LiteralString) -> list[UnusualAddress]:
    """The stored addresses that differ from their identities, by the ids of their accounts."""
    addresses: list[UnusualAddress] = []
    last = 0
    while True:
        rows = await reader.rows(
            UnusualAddress,
            f"""
            select id, email from {table} where id > %(last)s and email is not null and {UNUSUAL}
             order by id limit %(limit)s
            """,
            {"last": last, "limit": MAX_ADDRESSES},
        )
        addresses += [row for row in rows if row.identity]
        if len(rows) < MAX_ADDRESSES:
            return addresses
        last = rows[-1].id
