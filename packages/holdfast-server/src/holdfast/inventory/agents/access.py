"""API access for the pages of a merchant: the key, the keys before it, and the changes that agents made with each."""

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shops import operations as shops
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.security.service_secret import UnsealError

Scope = Literal["read_inventory", "write_inventory", "read_pools", "write_pools"]

MAX_KEYS = 20
"""The most keys that are shown, the newest."""

MAX_SEARCHED_ENTRIES = 10_000
"""How many of the newest entries of the history are searched for those of agents."""

KEY_PREFIX_CHARACTERS = 8
"""How many characters of an invalid key are shown, so that merchants recognize it."""


class ShowAccess(Command):
    """Get the keys of the caller's shop."""


class RenewKey(Command):
    """Make a new key with these scopes."""

    scopes: Annotated[list[Scope], Meta(min_length=1)]


class EndKey(Command):
    """End the key of the caller's shop, without a new one."""


class NameKeys(Command):
    """Get the beginnings of keys, by which merchants recognize them."""

    key_ids: Annotated[list[int], Meta(max_length=500)]


class Key(Struct, frozen=True):
    """A key of a shop.

    text           the key; only the beginning of an invalid one; empty if it cannot be decrypted any more
    changes        how many of the newest entries of the history were made with it, the last of them at `changed_at`
    programs       what the programs call themselves that made them
    """

    id: int
    text: str
    scopes: list[str]
    active: bool
    made_at: dt.datetime
    changes: int
    changed_at: dt.datetime | None
    programs: list[str]


async def show(reader: Reader, caller: Caller, command: ShowAccess) -> list[Key]:
    """The keys of the shop, the newest first. The first one is valid, unless the shop has none."""
    rows = await reader.tuples(
        """
        with recent_entry as (
            select actor, actor_id, agent_name, created_at from ledger where shop_id = %(shop_id)s
             order by id desc limit %(max_entries)s),
        agent_changes as (
            select actor_id, count(*) as changes, max(created_at) as changed_at,
                   coalesce(array_agg(distinct agent_name) filter (where agent_name is not null), '{}') as programs
              from recent_entry where actor = 'agent' group by actor_id)
        select api_keys.id, sealed, scopes, active, api_keys.inserted_at,
               coalesce(changes, 0), changed_at, coalesce(programs, '{}')
          from api_keys
          left join agent_changes on agent_changes.actor_id = api_keys.id
         where api_keys.shop_id = %(shop_id)s
         order by active desc, api_keys.id desc limit %(max_count)s
        """,
        {"shop_id": caller.tenant, "max_entries": MAX_SEARCHED_ENTRIES, "max_count": MAX_KEYS},
    )
    return [
        Key(id, _text(reader, sealed, active=active), scopes, active, *use) for id, sealed, scopes, active, *use in rows
    ]


async def name_keys(reader: Reader, caller: Caller, command: NameKeys) -> dict[int, str]:
    """The beginnings of keys of the shop, by their ids. Keys that cannot be decrypted any more are left out."""
    rows = await reader.tuples(
        "select id, sealed from api_keys where shop_id = %(shop_id)s and id = any(%(ids)s)",
        {"shop_id": caller.tenant, "ids": command.key_ids},
    )
    texts = {id: _text(reader, sealed, active=False) for id, sealed in rows}
    return {id: text for id, text in texts.items() if text}


async def renew(tx: Tx, caller: Caller, command: RenewKey) -> None:
    """Make a new key. The old one, and every identity and token derived from it, is invalid at once, everywhere."""
    await shops.regenerate_key(tx, caller.tenant, sorted({*command.scopes}))


async def end(tx: Tx, caller: Caller, command: EndKey) -> None:
    """End the key. It, and every identity and token derived from it, is invalid at once, everywhere."""
    await shops.end_key(tx, caller.tenant)


def _text(reader: Reader, sealed: bytes, *, active: bool) -> str:
    try:
        text = reader.resources.secret.unseal(sealed)
    except UnsealError:
        return ""
    return text if active else text[:KEY_PREFIX_CHARACTERS]
