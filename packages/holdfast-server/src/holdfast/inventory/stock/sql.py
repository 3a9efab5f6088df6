"""Statements on the ledger and on holds. `entry_rows.py` inserts entries.

The pools that a change concerns are those that it names, and those that share a variant with them.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

import msgspec

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.ledger_rules import LedgerPool
from holdfast.inventory.stock.model import (
    ActiveHold,
    Entry,
    GetStockAt,
    GetStockHistory,
    HeldQuantity,
    ListHolds,
    StockAt,
    StoredHold,
)


class ShopPosition(NamedTuple):
    """The version of a shop, the number of entries in its ledger, the database's time, and the shop's stamp.

    has_endpoints    whether programs are told by webhooks what happens
    """

    version: int
    entry_count: int
    now: datetime
    stamp: int | None
    has_endpoints: bool


MAX_ENTRIES_OF_CHANGE = 2_000
"""The most entries of one change: one for each pool of an import."""

HAS_ENDPOINTS: LiteralString = "exists (select from webhook_endpoints where tenant_id = %(shop_id)s)"


async def pools_around(
    reader: Reader, shop_id: int, pool_ids: Collection[int], variant_gids: Collection[str] = ()
) -> tuple[ShopPosition, list[LedgerPool]]:
    """The pools of the ids and of the variants, and every pool that shares a variant with these.

    The position of the shop comes from the same statement: callers need both, and each statement is a round trip.
    """
    rows = await reader.tuples(
        f"""
        -- `offset 0` keeps each look-up as it stands, down an index: as plain joins they read every member of the shop,
        -- and right after a load searches by arrays are slower.
        with requested_pool as materialized (
            select unnest(%(pool_ids)s::bigint[]) as id
             union
            select linked.pool_id
              from unnest(%(variant_gids)s::text[]) as variant (gid)
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = variant.gid offset 0) as linked),
        connected_pool as materialized (
            select id from requested_pool
             union
            select shared_member.pool_id
              from requested_pool
             cross join lateral (select variant_gid from members
                                  where shop_id = %(shop_id)s and pool_id = requested_pool.id offset 0) as member
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = member.variant_gid offset 0)
                   as shared_member)
        select shop.version, shop.entries, clock_timestamp(), shop.stamp, {HAS_ENDPOINTS}, pool.*,
               (select coalesce(json_object_agg(variant_gid, units_per_sale), '{{}}')
                  from members where shop_id = %(shop_id)s and pool_id = pool.id)
          from shared_inventories as shop
          left join (connected_pool
                     cross join lateral (
                           select id, name, unit, on_hand, held, buffer, low_stock_at, allow_negative, status::text,
                                  version, entries
                             from pools where shop_id = %(shop_id)s and id = connected_pool.id limit 1) as pool) on true
         where shop.shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "pool_ids": list(pool_ids), "variant_gids": list(variant_gids)},
    )
    [first, *_] = rows
    return ShopPosition(*first[:5]), [LedgerPool(*row[5:]) for row in rows if row[5] is not None]


async def lock_and_read_position(tx: Tx, shop_id: int) -> ShopPosition:
    """Lock a shop and wait for the lock, which `lock_shop` does not; read its position."""
    # A row that another transaction has changed meanwhile is read again with its lock, and the time too.
    [row] = await tx.tuples(
        f"""
        select version, entries, clock_timestamp(), stamp, {HAS_ENDPOINTS} from shared_inventories
         where shop_id = %(shop_id)s for no key update
        """,
        {"shop_id": shop_id},
    )
    return ShopPosition(*row)


async def find_entry(reader: Reader, shop_id: int, id: int) -> tuple[Entry, int | None] | None:
    """An entry, and the id of the entry that reverted it."""
    entries = await _entries(reader, "where shop_id = %(shop_id)s and id = %(id)s", shop_id=shop_id, id=id)
    if not entries:
        return None
    reverted_by = await reader.value(
        "select id from ledger where shop_id = %(shop_id)s and reverts_id = %(id)s", {"shop_id": shop_id, "id": id}
    )
    return entries[0], reverted_by


async def list_entries_of_change(reader: Reader, shop_id: int, entry: Entry) -> list[Entry]:
    """All entries of the change that an entry belongs to. Their ids are close to one another."""
    return await _entries(
        reader,
        """
        where shop_id = %(shop_id)s and version = %(version)s
          and id between %(id)s - %(max_entries)s and %(id)s + %(max_entries)s
        order by id
        """,
        shop_id=shop_id,
        version=entry.version,
        id=entry.id,
        max_entries=MAX_ENTRIES_OF_CHANGE,
    )


async def history(reader: Reader, shop_id: int, command: GetStockHistory) -> list[Entry]:
    """The newest entries that match, one more than a page."""
    # An index has the entries of each pool in the order of time, however many entries the shop has.
    of_pool: LiteralString = ""
    order: LiteralString = "id desc"
    if command.pool_id is not None:
        order = "created_at desc, seq desc"
        of_pool = """and pool_id = %(pool_id)s
          and created_at <= coalesce((select created_at from ledger where shop_id = %(shop_id)s and id = %(after)s),
                                     'infinity')"""
    return await _entries(
        reader,
        f"""
        where shop_id = %(shop_id)s and id < coalesce(%(after)s, 9223372036854775807) {of_pool}
          and (%(variant_gid)s::text is null
               or pool_id in (select members.pool_id from members
                               where members.shop_id = %(shop_id)s and members.variant_gid = %(variant_gid)s))
          and (%(kinds)s::entry_kind[] is null or kind = any(%(kinds)s::entry_kind[]))
          and (%(actor)s::text is null or actor = %(actor)s)
          and (%(source_ref)s::text is null or source_ref = %(source_ref)s)
          and (%(since)s::timestamptz is null or created_at >= %(since)s)
          and (%(until)s::timestamptz is null or created_at < %(until)s)
        order by {order} limit %(limit)s
        """,
        shop_id=shop_id,
        after=command.after(int),
        pool_id=command.pool_id,
        variant_gid=command.variant_gid,
        kinds=command.kinds,
        actor=command.actor,
        source_ref=command.source_ref,
        since=command.since,
        until=command.until,
        limit=command.limit + 1,
    )


async def _entries(reader: Reader, where: LiteralString, **params: Any) -> list[Entry]:
    return await reader.rows(
        Entry,
        "select id, pool_id, kind::text, delta, held_delta, balance_after, held_after, reason, actor, source,"
        " source_ref, by_variant, reverts_id, hold_id, version, created_at from ledger " + where,
        params,
    )


async def stock_at(reader: Reader, shop_id: int, command: GetStockAt) -> StockAt | None:
    """The stock of a pool at a moment; None if there is no such pool."""
    return await reader.row(
        StockAt,
        """
        select pools.id as pool_id, %(at)s::timestamptz as at, coalesce(balance_after, 0) as on_hand,
               coalesce(held_after, 0) as held, last.id as last_entry_id
          from pools
          left join lateral (
               select id, balance_after, held_after from ledger
                where ledger.shop_id = %(shop_id)s and pool_id = pools.id and created_at <= %(at)s
                 order by created_at desc, seq desc limit 1) as last on true
         where pools.shop_id = %(shop_id)s and pools.id = %(pool_id)s
        """,
        {"shop_id": shop_id, "pool_id": command.pool_id, "at": command.at},
    )


async def insert_holds(tx: Tx, shop_id: int, holds: Sequence[StoredHold], now: datetime) -> None:
    await tx.run(
        """
        with hold as (
            select * from json_to_recordset(%(holds)s) as hold (
                id bigint, reference text, expires_at timestamptz, lines json)),
        inserted_holds as (
            insert into holds (shop_id, id, reference, expires_at, inserted_at)
            select %(shop_id)s, id, reference, expires_at, %(now)s from hold)
        insert into hold_lines (shop_id, hold_id, pool_id, quantity)
        select %(shop_id)s, hold.id, hold_line.key::bigint, hold_line.value::bigint
          from hold cross join lateral json_each_text(hold.lines) as hold_line
        """,
        {"shop_id": shop_id, "holds": msgspec.json.encode(holds).decode(), "now": now},
    )


async def find_holds(reader: Reader, shop_id: int, ids: Collection[int]) -> list[StoredHold]:
    rows = await reader.tuples(
        """
        select id, reference, expires_at, released_at, sold,
               (select json_object_agg(pool_id, quantity) from hold_lines
                 where hold_lines.shop_id = %(shop_id)s and hold_id = holds.id)
          from holds where shop_id = %(shop_id)s and id = any(%(ids)s)
        """,
        {"shop_id": shop_id, "ids": list(ids)},
    )
    return [
        StoredHold(
            id, reference, expires_at, released_at, {int(pool): quantity for pool, quantity in lines.items()}, sold
        )
        for id, reference, expires_at, released_at, sold, lines in rows
    ]


async def end_holds(tx: Tx, shop_id: int, holds: Sequence[StoredHold]) -> None:
    await tx.run(
        """
        update holds set released_at = clock_timestamp(), sold = id = any(%(sold)s)
         where shop_id = %(shop_id)s and id = any(%(ids)s) and released_at is null
        """,
        {"shop_id": shop_id, "ids": [hold.id for hold in holds], "sold": [hold.id for hold in holds if hold.sold]},
    )


async def list_holds(reader: Reader, shop_id: int, command: ListHolds) -> list[ActiveHold]:
    """The active holds that match, the newest first, one more than a page."""
    rows = await reader.tuples(
        """
        select id, reference, expires_at, inserted_at,
               (select json_agg(json_build_object('pool_id', pool_id, 'quantity', quantity) order by pool_id)
                  from hold_lines where hold_lines.shop_id = %(shop_id)s and hold_id = holds.id)
          from holds
         where shop_id = %(shop_id)s and released_at is null
           and id < coalesce(%(after)s, 9223372036854775807)
           and (%(reference)s::text is null or reference = %(reference)s)
           and (%(pool_id)s::bigint is null
                or exists (select from hold_lines where hold_lines.shop_id = %(shop_id)s and hold_id = holds.id
                                                    and pool_id = %(pool_id)s))
         order by id desc limit %(limit)s
        """,
        {
            "shop_id": shop_id,
            "after": command.after(int),
            "reference": command.reference,
            "pool_id": command.pool_id,
            "limit": command.limit + 1,
        },
    )
    return [
        ActiveHold(id, reference, expires_at, inserted_at, msgspec.convert(pools, list[HeldQuantity]))
        for id, reference, expires_at, inserted_at, pools in rows
    ]


async def list_expired_holds(reader: Reader, limit: int) -> Mapping[int, list[int]]:
    """The ids of expired holds by shop, of at most a thousand shops.

    limit    the most holds of one shop
    """
    rows = await reader.tuples(
        """
        -- An index is searched for a moment that is computed once; clock_timestamp() itself is computed for each row.
        with expired as materialized (
            select shop_id, id, expires_at from holds
             where released_at is null and expires_at <= (select clock_timestamp()) order by expires_at)
        select shop_id, array_agg(id order by expires_at)
          from (select *, row_number() over (partition by shop_id order by expires_at) as number from expired) as due
         where number <= %(limit)s
         group by shop_id limit 1000
        """,
        {"limit": limit},
    )
    return dict(rows)


async def seconds_until_expiry(reader: Reader, excluded_ids: Sequence[int] = ()) -> float | None:
    """The seconds until the next hold expires. Holds of the excluded shops do not count."""
    return await reader.value(
        """
        select extract(epoch from min(expires_at) - clock_timestamp())::float from holds
         where released_at is null and shop_id <> all(%(excluded_ids)s)
        """,
        {"excluded_ids": list(excluded_ids)},
    )
