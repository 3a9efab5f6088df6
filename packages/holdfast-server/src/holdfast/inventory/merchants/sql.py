"""Statements on merchants."""

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.accounts.agent_requests import count_of
from holdfast.inventory.merchants.model import EntryActor, Merchant, SetLowStockMails
from holdfast.kit.postgres.database import Reader, Tx

MERCHANT: LiteralString = """
    merchants.id, coalesce(email, '') as email, merchants.shop_id as tenant_id, proved_at is not null as is_proved,
    shops.domain as shop, staff_id
"""


async def find(reader: Reader[Any], ids: Sequence[int]) -> list[Merchant]:
    """The merchants with these ids, without those of shops that have uninstalled the app."""
    return await reader.rows(
        Merchant,
        f"""
        select {MERCHANT}, {count_of("merchants.shop_id")} as requests
          from merchants join shops on shops.id = merchants.shop_id
          left join installs on installs.shop_id = shops.id
         where merchants.id = any(%(ids)s) and installs.uninstalled_at is null
        """,
        {"ids": list(ids)},
    )


async def prove(tx: Tx[Any], email: str, language: str | None) -> Merchant | None:
    """Store that an address is proved, and the language of its mails. Returns its merchant; None if there is none."""
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


async def find_or_add_staff(tx: Tx[Any], shop: str, staff_id: str) -> int | None:
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


async def list_merchant_ids(reader: Reader[Any], shop_id: int) -> list[int]:
    """The ids of the merchants of a shop."""
    rows = await reader.tuples("select id from merchants where shop_id = %(shop_id)s", {"shop_id": shop_id})
    return [id for (id,) in rows]


async def list_actors(reader: Reader[Any], shop_id: int, entry_ids: Sequence[int]) -> list[EntryActor]:
    """The merchants and the keys of those of the entries that merchants or agents made, in the order of the entries."""
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
        {"shop_id": shop_id, "ids": list(entry_ids)},
    )


async def wants_low_stock(reader: Reader[Any], shop_id: int, id: int) -> bool:
    """Whether a merchant wants mails about low stock."""
    return bool(
        await reader.value(
            "select wants_low_stock from merchants where shop_id = %(shop_id)s and id = %(id)s and email is not null",
            {"shop_id": shop_id, "id": id},
        )
    )


async def set_low_stock_mails(tx: Tx[Any], shop_id: int, id: int, wish: SetLowStockMails) -> None:
    await tx.run(
        """
        update merchants set wants_low_stock = %(is_enabled)s, language = %(language)s
         where shop_id = %(shop_id)s and id = %(id)s
        """,
        {"shop_id": shop_id, "id": id, "is_enabled": wish.enabled, "language": wish.language},
    )


async def add_owner(tx: Tx[Any], shop_id: int, email: str) -> int | None:
    """The id of the merchant with an address, added if need be; None if the address is of another shop."""
    return await tx.value(
        """
        insert into merchants (shop_id, email) values (%(shop_id)s, %(email)s)
            on conflict (email) do update set email = excluded.email where merchants.shop_id = %(shop_id)s
        returning id
        """,
        {"shop_id": shop_id, "email": email},
    )


async def first_owner(reader: Reader[Any], shop_id: int) -> str | None:
    """The address of the first merchant who has one."""
    return await reader.value(
        "select email from merchants where shop_id = %(shop_id)s and email is not null order by id limit 1",
        {"shop_id": shop_id},
    )
