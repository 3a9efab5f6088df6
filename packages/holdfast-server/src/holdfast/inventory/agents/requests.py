"""What agents that ask first want to change: the operations that wait, the key that asks, and what they are about."""

from collections.abc import Mapping
from typing import Any

from holdfast.accounts.agent_limits import KEY_ASKS_FIRST, LIMIT_OF_KEY
from holdfast.accounts.agent_requests import AgentRequests, Credential, Facts, RequestRow
from holdfast.accounts.agents.agents_page import REQUESTS
from holdfast.inventory.resources import Reader
from holdfast.kit.contract.caller import api_key
from holdfast.kit.running.operation import Operations

MAX_POOLS = 300
"""The most pools whose stock is shown, and compared, for one request."""


def agent_requests(operations: Operations, base_url: str) -> AgentRequests:
    """The requests of agents. Each tool that changes something waits for a person."""
    covered = [operation.name for operation in operations if not operation.mode.reads]
    return AgentRequests(operations, covered, f"{base_url}{REQUESTS}", has_grants=False)


async def find_credential(reader: Reader, shop_id: int, request: RequestRow) -> Credential:
    """The key that asks, as it is now. Keys of shops have no names."""
    rows = await reader.tuples(
        f"""
        select scopes, {LIMIT_OF_KEY}, {KEY_ASKS_FIRST} from api_keys
         where id = %(key_id)s and shop_id = %(shop_id)s and active
        """,
        {"key_id": request.key_id, "shop_id": shop_id},
    )
    for scopes, limit_id, asks_first in rows:
        assert request.key_id
        return Credential("", api_key(request.key_id, shop_id, frozenset(scopes), limit_id, asks_first=asks_first))
    return Credential("", None)


async def read_facts(reader: Reader, shop_id: int, name: str, command: Any, *, locks: bool) -> Facts:
    """What a command is about, as it is now: what a person is shown of it, and nothing else.

    locks    whether to lock the stock of the shop first, as every change of it does
    """
    if locks:
        await reader.tuples(
            "select from shared_inventories where shop_id = %(shop_id)s for no key update", {"shop_id": shop_id}
        )
    entry_id = getattr(command, "entry_id", None)
    entry = await _entry(reader, shop_id, entry_id) if entry_id else None
    pool_ids = [
        id
        for id in (
            *(getattr(command, field, None) for field in ("pool_id", "from_pool_id", "to_pool_id")),
            *(item.pool_id for item in getattr(command, "items", ())),
            entry and entry["pool_id"],
        )
        if id
    ]
    gids = [
        gid
        for gid in (
            getattr(command, "variant_gid", None),
            *getattr(command, "variant_gids", ()),
            *(member.variant_gid for member in getattr(command, "members", ())),
        )
        if gid
    ]
    parameters = {
        "shop_id": shop_id,
        "pool_ids": pool_ids,
        "gids": gids,
        "drawing_gids": gids if name in {"record_sale", "hold_quantity"} else [],
        "hold_id": getattr(command, "hold_id", None),
        "limit": MAX_POOLS,
    }
    return {
        "pools": await _pools(reader, parameters),
        "variants": await _variants(reader, parameters) if gids else {},
        "hold": await _hold(reader, parameters) if parameters["hold_id"] else None,
        "entry": entry,
    }


async def _pools(reader: Reader, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    rows = await reader.tuples(
        """
        select id, json_build_object(
                   'name', name, 'unit', unit, 'on_hand', on_hand, 'held', held, 'status', status, 'buffer', buffer,
                   'low_stock_at', low_stock_at, 'allow_negative', allow_negative, 'policy', policy)
          from pools
         where shop_id = %(shop_id)s
           and id = any(%(pool_ids)s::bigint[]
                        || array(select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = any(%(drawing_gids)s::text[]))
                        || array(select pool_id from hold_lines
                                  where shop_id = %(shop_id)s and hold_id = %(hold_id)s::bigint))
         order by id limit %(limit)s
        """,
        parameters,
    )
    return {str(id): pool for id, pool in rows}


async def _variants(reader: Reader, parameters: Mapping[str, Any]) -> Mapping[str, str]:
    rows = await reader.tuples(
        """
        select gid, coalesce(nullif(concat_ws(', ', nullif(platform.product_title, ''),
                                              nullif(nullif(platform.title, ''), 'Default Title')), ''),
                             linked.title, gid)
          from unnest(%(gids)s::text[]) as gid
          left join lateral (select product_title, title from catalog_variants
                              where shop_id = %(shop_id)s and catalog_variants.gid = gid.gid limit 1)
                    as platform on true
          left join lateral (select title from variants
                              where shop_id = %(shop_id)s and variants.gid = gid.gid limit 1) as linked on true
        """,
        parameters,
    )
    return dict(rows)


async def _hold(reader: Reader, parameters: Mapping[str, Any]) -> Any:
    return await reader.value(
        """
        select json_build_object('reference', reference, 'has_ended', released_at is not null) from holds
         where shop_id = %(shop_id)s and id = %(hold_id)s::bigint
        """,
        parameters,
    )


async def _entry(reader: Reader, shop_id: int, id: int) -> Any:
    return await reader.value(
        """
        select json_build_object('pool_id', pool_id, 'delta', delta, 'held_delta', held_delta, 'kind', kind)
          from ledger where shop_id = %(shop_id)s and id = %(id)s
        """,
        {"shop_id": shop_id, "id": id},
    )
