"""What agents that ask first want to change: the operations that wait, the key that asks, and what they are about."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.accounts.agents.agents_page import REQUESTS
from holdfast.accounts.agents.approvals import Credential, Facts, WaitingRequest
from holdfast.accounts.agents.limits import KEY_ASKS_FIRST, LIMIT_OF_KEY
from holdfast.accounts.agents.requests import AgentRequests, CredentialId
from holdfast.inventory.resources import Reader
from holdfast.kit.contract.caller import api_key
from holdfast.kit.operations.operation import Operations

MAX_POOLS = 300
"""The most pools whose stock is shown, and compared, for one request."""


def approval_gate(operations: Operations, base_url: str) -> AgentRequests:
    """What stores the requests of agents. Each tool that changes something waits for a person."""
    covered = [operation.name for operation in operations if not operation.mode.reads]
    return AgentRequests(covered, f"{base_url}{REQUESTS}", has_grants=False)


async def find_credentials(
    reader: Reader, shop_id: int, ids: Collection[CredentialId]
) -> Mapping[CredentialId, Credential]:
    """The keys that ask, as they are now. Keys of shops have no names."""
    rows = await reader.tuples(
        f"""
        select id, scopes, {LIMIT_OF_KEY}, {KEY_ASKS_FIRST} from api_keys
         where id = any(%(ids)s) and shop_id = %(shop_id)s and active
        """,
        {"ids": [id.key_id for id in ids], "shop_id": shop_id},
    )
    return {
        CredentialId(id, None): Credential("", api_key(id, shop_id, frozenset(scopes), limit_id, asks_first=asks_first))
        for id, scopes, limit_id, asks_first in rows
    }


class _Subject(Struct):
    """What a command names.

    drawing_gids    the variants whose pools it takes from
    """

    pool_ids: list[int]
    gids: list[str]
    drawing_gids: list[str]
    hold_id: int | None


async def read_facts(
    reader: Reader, shop_id: int, requests: Sequence[WaitingRequest], *, locks: bool
) -> Sequence[Facts]:
    """What each request is about, as it is now: what a person is shown of it, and nothing else.

    locks    whether to lock the stock of the shop first, as every change of it does
    """
    if locks:
        await reader.tuples(
            "select from shared_inventories where shop_id = %(shop_id)s for no key update", {"shop_id": shop_id}
        )
    entry_ids = [getattr(request.command, "entry_id", None) for request in requests]
    entries = await _entries(reader, shop_id, [id for id in entry_ids if id])
    subjects = [_subject(request, entries.get(id)) for request, id in zip(requests, entry_ids, strict=True)]
    pools = await _pools(reader, shop_id, subjects)
    titles = await _titles(reader, shop_id, sorted({gid for subject in subjects for gid in subject.gids}))
    holds = await _holds(reader, shop_id, [subject.hold_id for subject in subjects if subject.hold_id])
    return [
        {
            "pools": pools.get(index, {}),
            "variants": {gid: titles[gid] for gid in subject.gids},
            "hold": holds.get(subject.hold_id),
            "entry": entries.get(entry_id),
        }
        for index, (subject, entry_id) in enumerate(zip(subjects, entry_ids, strict=True))
    ]


def _subject(request: WaitingRequest, entry: Mapping[str, Any] | None) -> _Subject:
    command = request.command
    pool_ids: list[int | None] = [
        *(getattr(command, field, None) for field in ("pool_id", "from_pool_id", "to_pool_id")),
        *(item.pool_id for item in getattr(command, "items", ())),
        entry["pool_id"] if entry else None,
    ]
    every_gid = [
        getattr(command, "variant_gid", None),
        *getattr(command, "variant_gids", ()),
        *(member.variant_gid for member in getattr(command, "members", ())),
    ]
    gids = [gid for gid in every_gid if gid]
    return _Subject(
        [id for id in pool_ids if id],
        gids,
        gids if request.operation in {"record_sale", "hold_quantity"} else [],
        getattr(command, "hold_id", None),
    )


async def _pools(reader: Reader, shop_id: int, subjects: Sequence[_Subject]) -> Mapping[int, Mapping[str, Any]]:
    """The pools of each subject by their ids, by its index."""
    rows = await reader.tuples(
        """
        select subject.index - 1, pool.id, pool.facts
          from rows from (json_to_recordset(%(subjects)s::json)
                          as (pool_ids bigint[], drawing_gids text[], hold_id bigint))
               with ordinality as subject (pool_ids, drawing_gids, hold_id, index)
         cross join lateral (
               select id, json_build_object(
                          'name', name, 'unit', unit, 'on_hand', on_hand, 'held', held, 'status', status,
                          'buffer', buffer, 'low_stock_at', low_stock_at, 'allow_negative', allow_negative,
                          'policy', policy) as facts
                 from pools
                where shop_id = %(shop_id)s
                  and id = any(subject.pool_ids
                               || array(select pool_id from members
                                         where shop_id = %(shop_id)s and variant_gid = any(subject.drawing_gids))
                               || array(select pool_id from hold_lines
                                         where shop_id = %(shop_id)s and hold_lines.hold_id = subject.hold_id))
                order by id limit %(limit)s) as pool
         order by 1, 2
        """,
        {"shop_id": shop_id, "subjects": msgspec.json.encode(subjects).decode(), "limit": MAX_POOLS},
    )
    pools: dict[int, dict[str, Any]] = {}
    for index, id, facts in rows:
        pools.setdefault(index, {})[str(id)] = facts
    return pools


async def _titles(reader: Reader, shop_id: int, gids: Sequence[str]) -> Mapping[str, str]:
    """The titles of variants, by gid; the gid of one without a title."""
    if not gids:
        return {}
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
        {"shop_id": shop_id, "gids": list(gids)},
    )
    return dict(rows)


async def _holds(reader: Reader, shop_id: int, ids: Sequence[int]) -> Mapping[int | None, Any]:
    if not ids:
        return {}
    rows = await reader.tuples(
        """
        select id, json_build_object('reference', reference, 'has_ended', released_at is not null) from holds
         where shop_id = %(shop_id)s and id = any(%(ids)s)
        """,
        {"shop_id": shop_id, "ids": list(ids)},
    )
    return dict(rows)


async def _entries(reader: Reader, shop_id: int, ids: Sequence[int]) -> Mapping[int | None, Any]:
    if not ids:
        return {}
    rows = await reader.tuples(
        """
        select id, json_build_object('pool_id', pool_id, 'delta', delta, 'held_delta', held_delta, 'kind', kind)
          from ledger where shop_id = %(shop_id)s and id = any(%(ids)s)
        """,
        {"shop_id": shop_id, "ids": list(ids)},
    )
    return dict(rows)
