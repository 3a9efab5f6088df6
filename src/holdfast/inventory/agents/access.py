"""API access, as a merchant sees it: the key, the keys before it, and what agents have done with each."""

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shops import operations as shops
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.secrets import Unreadable

Scope = Literal["read_inventory", "write_inventory", "read_pools", "write_pools"]

MOST_KEYS = 20
LOOKED_AT = 10_000
"""The newest entries of the history among which those of agents are looked for."""

BEGINNING = 8
"""Characters of a key that is no longer good by which people recognize it."""


class ShowAccess(Command):
    """Nothing more: it is that of the caller's shop."""


class RenewKey(Command):
    """Asks for a new key, with these scopes."""

    scopes: Annotated[list[Scope], Meta(min_length=1)]


class Key(Struct, frozen=True):
    """A key of a shop.

    text           the key; of one that is no longer good only its beginning; empty if it cannot be read any more
    agent_since    when an agent was given an identity for it; None: none was
    changes        how many of the newest entries of the history were made with it, the last of them at `changed_at`
    tools          by which tools
    """

    id: int
    text: str
    scopes: list[str]
    active: bool
    made_at: dt.datetime
    agent_since: dt.datetime | None
    changes: int
    changed_at: dt.datetime | None
    tools: list[str]


async def show(reader: Reader, caller: Caller, command: ShowAccess) -> list[Key]:
    """The keys of the shop, the newest first: the first one is good, unless the shop has none."""
    rows = await reader.tuples(
        """
        with recent as (
            select actor, actor_id, source, created_at from ledger where shop_id = %(shop_id)s
             order by id desc limit %(looked_at)s),
        made as (
            select actor_id, count(*) as changes, max(created_at) as changed_at,
                   array_agg(distinct source order by source) as tools
              from recent where actor = 'agent' group by actor_id)
        select api_keys.id, sealed, scopes, active, api_keys.inserted_at,
               agent.inserted_at, coalesce(changes, 0), changed_at, coalesce(tools, '{}')
          from api_keys
          left join agent_registrations as agent on agent.api_key_id = api_keys.id
          left join made on made.actor_id = api_keys.id
         where api_keys.shop_id = %(shop_id)s
         order by active desc, api_keys.id desc limit %(most)s
        """,
        {"shop_id": caller.tenant, "looked_at": LOOKED_AT, "most": MOST_KEYS},
    )
    return [Key(id, _text(reader, sealed, active), scopes, active, *use) for id, sealed, scopes, active, *use in rows]


async def renew(tx: Tx, caller: Caller, command: RenewKey) -> None:
    """Make a new key. The old one, and every identity and token derived from it, is invalid at once, everywhere."""
    await shops.regenerate_key(tx, caller.tenant, sorted({*command.scopes}))


def _text(reader: Reader, sealed: bytes, active: bool) -> str:
    try:
        text = reader.resources.secret.unseal(sealed)
    except Unreadable:
        return ""
    return text if active else text[:BEGINNING]
