"""The accounts of merchants: they sign in by the platform's word, act for their shop, and their sessions end."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.accounts import sessions
from holdfast.accounts.addresses import usable
from holdfast.accounts.directory import Account, StoredPassword
from holdfast.accounts.signin import links
from holdfast.inventory.merchants import sql
from holdfast.inventory.merchants.model import EntryActor, GetLowStockMails, ListActors, SetLowStockMails, StaffSignIn
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Reader
from holdfast.inventory.resources import Tx as ShopTx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, invalid
from holdfast.kit.postgres import database
from holdfast.kit.postgres.database import Tx


async def begin_staff_session(tx: Tx[Any], entering: StaffSignIn) -> str:
    """Begin a session of a person that the platform vouches for. Returns its secret. Raises `shop_not_connected`."""
    id = await sql.find_or_add_staff(tx, entering.shop, entering.staff_id)
    if id is None:
        raise SHOP_NOT_CONNECTED()
    return await sessions.begin(tx, id, "platform", entering.called)


async def end_sessions(tx: Tx[Any], shop_id: int) -> None:
    """End the sessions of all merchants of a shop."""
    ids = await sql.list_merchant_ids(tx, shop_id)
    await sessions.end_of_accounts(tx, ids)
    await sessions.forget_browsers_of(tx, ids)


async def list_actors(reader: Reader, caller: Caller, command: ListActors) -> list[EntryActor]:
    """Which merchants, and which keys of agents, made which entries. Entries of other actors are left out."""
    return await sql.list_actors(reader, caller.tenant, command.entry_ids)


async def get_low_stock_mails(reader: Reader, caller: Caller, command: GetLowStockMails) -> bool:
    """Whether the calling merchant's mails about low stock are on."""
    return await sql.wants_low_stock(reader, caller.tenant, caller.id)


async def set_low_stock_mails(tx: ShopTx, caller: Caller, command: SetLowStockMails) -> None:
    """Store whether the calling merchant's mails about low stock are on."""
    await sql.set_low_stock_mails(tx, caller.tenant, caller.id, command)


async def add_owner(tx: Tx[Any], shop_id: int, email: str) -> int:
    """Let the owner of an address sign in to a shop. Returns the id of the merchant.

    Raises `validation_failed` for a malformed address, and for one that belongs to another shop.
    """
    written = usable(email)
    if written is None:
        raise invalid({"email": ["must be an e-mail address such as ann@example.com"]})
    id = await sql.add_owner(tx, shop_id, written)
    if id is None:
        raise invalid({"email": ["belongs to another shop; each shop needs an address of its own"]})
    return id


async def console_link(tx: Tx[Any], shop_id: int) -> int:
    """The id of a link that signs the first owner of a shop in, once. Raises `not_found` if it has no owner."""
    email = await sql.first_owner(tx, shop_id)
    if email is None:
        raise NOT_FOUND("The shop has no owner who signs in: name one with `holdfast inventory shop owner`.")
    return await links.create_unbound_link(tx, email, "/console")


class MerchantDirectory:
    """The rows of `merchants`. They have no passwords, and signing in adds no row."""

    async def find(self, reader: database.Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        return {merchant.id: merchant for merchant in await sql.find(reader, ids)}

    async def find_password(self, reader: database.Reader[Any], email: str) -> StoredPassword | None:
        return None

    async def still_has(self, tx: database.Tx[Any], password: StoredPassword) -> bool:
        return False

    async def prove(self, tx: database.Tx[Any], email: str, language: str | None = None) -> Account | None:
        return await sql.prove(tx, email, language)

    def canonical(self, email: str) -> str | None:
        return usable(email)
