"""How merchants come in by the platform's word, how their sessions end, and who of them did what."""

from typing import Any

from holdfast.accounts import sessions
from holdfast.accounts.signin import links
from holdfast.accounts.signin.addresses import usable
from holdfast.inventory.merchants import sql
from holdfast.inventory.merchants.model import Actor, AskLowStock, Enter, ListActors, WantLowStock
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Reader
from holdfast.inventory.resources import Tx as ShopTx
from holdfast.kit.caller import Caller
from holdfast.kit.database import Tx
from holdfast.kit.problems import NOT_FOUND, invalid


async def enter(tx: Tx[Any], entering: Enter) -> str:
    """Begin a session of somebody for whom the platform vouches. Returns its secret. Raises `shop_not_connected`."""
    id = await sql.vouched_for(tx, entering.shop, entering.staff_id)
    if id is None:
        raise SHOP_NOT_CONNECTED()
    return await sessions.begin(tx, id, "platform", entering.called)


async def end_sessions(tx: Tx[Any], shop_id: int) -> None:
    """End the sessions of all merchants of a shop."""
    await sessions.end_of(tx, await sql.ids_of(tx, shop_id))


async def list_actors(reader: Reader, caller: Caller, command: ListActors) -> list[Actor]:
    """Who of the shop's merchants made which of some entries. Entries of others are left out."""
    return await sql.list_actors(reader, caller.tenant, command.entry_ids)


async def ask_low_stock(reader: Reader, caller: Caller, command: AskLowStock) -> bool:
    """Whether the merchant who asks wants mails about low stock."""
    return await sql.wants_low_stock(reader, caller.tenant, caller.id)


async def want_low_stock(tx: ShopTx, caller: Caller, command: WantLowStock) -> None:
    """Store whether the merchant who asks wants mails about low stock."""
    await sql.want_low_stock(tx, caller.tenant, caller.id, command)


async def add_owner(tx: Tx[Any], shop_id: int, email: str) -> int:
    """Let the owner of an address sign in to a shop. Returns the id of the merchant.

    Raises `validation_failed` for what is no address, and for one that belongs to another shop.
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
        raise NOT_FOUND("Nobody signs in to this shop yet: name an owner with `holdfast inventory shop owner`.")
    return await links.make(tx, email, "/console")
