"""The accounts of merchants: they sign in by the platform's word, act for their shop, and their sessions end."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from holdfast.accounts import known_browsers, sessions
from holdfast.accounts.addresses import usable_address
from holdfast.accounts.agents.requests import waiting_requests_count
from holdfast.accounts.directory import Account, StoredPassword
from holdfast.accounts.signin import links
from holdfast.inventory.merchants.model import (
    EntryActor,
    GetLowStockMails,
    ListActors,
    Merchant,
    SetLowStockMails,
    StaffSignIn,
)
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Reader as ShopReader
from holdfast.inventory.resources import Tx as ShopTx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, invalid
from holdfast.kit.postgres.database import Reader, Tx

MERCHANT: LiteralString = """
    merchants.id, coalesce(email, '') as email, merchants.shop_id as tenant_id, proved_at is not null as is_proved,
    shops.domain as shop, staff_id
"""


async def begin_staff_session(tx: Tx[Any], entering: StaffSignIn) -> str:
    """Begin a session of a person that the platform vouches for. Returns its secret. Raises `shop_not_connected`."""
    id = await _find_or_add_staff(tx, entering.shop, entering.staff_id)
    if id is None:
        raise SHOP_NOT_CONNECTED()
    return await sessions.begin(tx, id, "platform", entering.called)


async def _find_or_add_staff(tx: Tx[Any], shop: str, staff_id: str) -> int | None:
    """The id of a merchant that the platform vouches for, added if need be; None if the shop lacks the app.

    The app is not uninstalled until the transaction ends.
    """
    return await tx.value(
        """
        with shop as (
            select shop_id from installs join shops on shops.id = installs.shop_id
             where shops.domain = %(shop)s and uninstalled_at is null for share of installs)
        insert into merchants (shop_id, staff_id, proved_at) select shop_id, %(staff_id)s, now() from shop
            on conflict (shop_id, staff_id) do update set staff_id = excluded.staff_id
        returning id
        """,
        {"shop": shop, "staff_id": staff_id},
    )


async def end_sessions(tx: Tx[Any], shop_id: int) -> None:
    """End the sessions of all merchants of a shop."""
    rows = await tx.tuples("select id from merchants where shop_id = %(shop_id)s", {"shop_id": shop_id})
    ids = [id for (id,) in rows]
    await sessions.end_of_accounts(tx, ids)
    await known_browsers.forget_browsers_of(tx, ids)


async def list_actors(reader: ShopReader, caller: Caller, command: ListActors) -> list[EntryActor]:
    """Which merchants, and which keys of agents, made which entries. Entries of other actors are left out."""
    return await reader.rows(
        EntryActor,
        """
        select ledger.id as entry_id, email, staff_id, case when actor = 'agent' then actor_id end as key_id,
               agent_name
          from ledger
          left join lateral (
               select id, email, staff_id from merchants
                where actor = 'staff' and merchants.shop_id = %(shop_id)s and id = actor_id limit 1) as merchant on true
         where ledger.shop_id = %(shop_id)s and ledger.id = any(%(ids)s)
           and (merchant.id is not null or actor = 'agent')
         order by ledger.id
        """,
        {"shop_id": caller.tenant, "ids": list(command.entry_ids)},
    )


async def get_low_stock_mails(reader: ShopReader, caller: Caller, command: GetLowStockMails) -> bool:
    """Whether the calling merchant's mails about low stock are on."""
    return bool(
        await reader.value(
            "select wants_low_stock from merchants where shop_id = %(shop_id)s and id = %(id)s and email is not null",
            {"shop_id": caller.tenant, "id": caller.id},
        )
    )


async def set_low_stock_mails(tx: ShopTx, caller: Caller, command: SetLowStockMails) -> None:
    """Store whether the calling merchant's mails about low stock are on."""
    await tx.run(
        """
        update merchants set wants_low_stock = %(is_enabled)s, language = %(language)s
         where shop_id = %(shop_id)s and id = %(id)s
        """,
        {"shop_id": caller.tenant, "id": caller.id, "is_enabled": command.enabled, "language": command.language},
    )


async def add_owner(tx: Tx[Any], shop_id: int, email: str) -> int:
    """Let the owner of an address sign in to a shop. Returns the id of the merchant.

    Raises `validation_failed` for a malformed address, and for one that belongs to another shop.
    """
    address = usable_address(email)
    if address is None:
        raise invalid({"email": ["must be an e-mail address such as ann@example.com"]})
    id = await tx.value(
        """
        insert into merchants (shop_id, email) values (%(shop_id)s, %(email)s)
            on conflict (email) do update set email = excluded.email where merchants.shop_id = %(shop_id)s
        returning id
        """,
        {"shop_id": shop_id, "email": address},
    )
    if id is None:
        raise invalid({"email": ["belongs to another shop; each shop needs an address of its own"]})
    return id


async def console_link(tx: Tx[Any], shop_id: int) -> int:
    """The id of a link that signs the first owner of a shop in, once. Raises `not_found` if it has no owner."""
    email = await tx.value(
        "select email from merchants where shop_id = %(shop_id)s and email is not null order by id limit 1",
        {"shop_id": shop_id},
    )
    if email is None:
        raise NOT_FOUND("The shop has no owner who signs in: name one with `holdfast inventory shop owner`.")
    return await links.create_unbound_link(tx, email, "/console")


class MerchantDirectory:
    """The rows of `merchants`. They have no passwords, and signing in adds no row."""

    async def find(self, reader: Reader[Any], ids: Sequence[int]) -> Mapping[int, Account]:
        """The merchants with these ids, without those of shops that have uninstalled the app."""
        merchants = await reader.rows(
            Merchant,
            f"""
            select {MERCHANT}, {waiting_requests_count("merchants.shop_id")} as requests
              from merchants join shops on shops.id = merchants.shop_id
              left join installs on installs.shop_id = shops.id
             where merchants.id = any(%(ids)s) and installs.uninstalled_at is null
            """,
            {"ids": list(ids)},
        )
        return {merchant.id: merchant for merchant in merchants}

    async def find_password(self, reader: Reader[Any], email: str) -> StoredPassword | None:
        return None

    async def still_has(self, tx: Tx[Any], password: StoredPassword) -> bool:
        return False

    async def prove(self, tx: Tx[Any], email: str, language: str | None = None) -> Account | None:
        return await tx.row(
            Merchant,
            f"""
            with merchants as (
                update merchants set proved_at = coalesce(proved_at, now()), language = coalesce(%(language)s, language)
                 where email = %(email)s returning *)
            select {MERCHANT} from merchants join shops on shops.id = merchants.shop_id
              left join installs on installs.shop_id = shops.id where installs.uninstalled_at is null
            """,
            {"email": email, "language": language},
        )

    def canonical(self, email: str) -> str | None:
        return usable_address(email)
