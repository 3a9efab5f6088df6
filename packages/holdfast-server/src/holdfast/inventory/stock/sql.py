"""Statements on the ledger, the holds, and the versions of shops.

A statement takes new entries as an array of numbers, and the causes that entries share: JSON with every field of every
entry would cost PostgreSQL more than all indexes of the ledger. The pools that a change concerns are those it names,
and those that share a variant with them.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

import msgspec

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.ledger_rules import StockPool
from holdfast.inventory.stock.model import (
    ActiveHold,
    Entry,
    EntryKind,
    GetStockAt,
    GetStockHistory,
    HeldQuantity,
    ListHolds,
    StockAt,
    StoredHold,
)

WIDTH = 11
"""How many numbers an entry has: those of `EntryRows.add`, with the place of its cause."""


class EntryCause(NamedTuple):
    """What entries can have in common. `by_variant` is JSON."""

    kind: EntryKind
    below_zero: bool
    actor: str
    actor_id: int | None
    agent_name: str | None
    source: str
    source_ref: str | None
    reason: str | None
    idempotency_key: str | None
    by_variant: bytes | None


class EntryRows:
    """The rows of entries that are made at the same time."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.count = 0
        self._numbers: list[int] = []
        self._places: dict[EntryCause, int] = {}

    def add(
        self,
        entry: Entry,
        seq: int,
        *,
        below_zero: bool,
        actor_id: int | None,
        agent_name: str | None,
        idempotency_key: str | None,
    ) -> None:
        """Add an entry, which is number `seq` of its pool."""
        cause = EntryCause(
            entry.kind,
            below_zero,
            entry.actor,
            actor_id,
            agent_name,
            entry.source,
            entry.source_ref,
            entry.reason,
            idempotency_key,
            None if entry.by_variant is None else msgspec.json.encode(entry.by_variant),
        )
        place = self._places.setdefault(cause, len(self._places))
        assert entry.id is not None
        assert entry.version is not None
        self._numbers += (
            *(entry.id, entry.pool_id, seq, entry.delta, entry.held_delta, entry.balance_after, entry.held_after),
            *(entry.version, entry.reverts_id or 0, entry.hold_id or 0, place),
        )
        self.count += 1

    def numbers_text(self) -> str:
        """The numbers of all entries as the text of an array in PostgreSQL; 0 for an id that is missing."""
        return "{" + msgspec.json.encode(self._numbers)[1:-1].decode() + "}"

    def causes_text(self) -> str:
        """The causes as JSON, each with its place."""
        causes: list[dict[str, Any]] = [
            {
                "place": place,
                **{name: value for name, value in cause._asdict().items() if value is not None},
                **({} if cause.by_variant is None else {"by_variant": msgspec.Raw(cause.by_variant)}),
            }
            for cause, place in self._places.items()
        ]
        return msgspec.json.encode(causes).decode()


class ShopPosition(NamedTuple):
    """The version of a shop, the number of entries in its ledger, the database's time, and the shop's stamp."""

    version: int
    entry_count: int
    now: datetime
    stamp: int | None


async def pools_around(
    reader: Reader, shop_id: int, pool_ids: Collection[int], variant_gids: Collection[str] = ()
) -> tuple[ShopPosition, list[StockPool]]:
    """The pools of the ids or drawn on by the variants, and every pool that shares a variant with these.

    The position of the shop comes from the same statement: callers need both, and each statement is a round trip.
    """
    rows = await reader.tuples(
        """
        -- `offset 0` keeps each look-up as it stands, down an index: as plain joins they read every member of the shop,
        -- and right after a load searches by arrays are slower.
        with requested_pool as materialized (
            select unnest(%(pool_ids)s::bigint[]) as id
             union
            select drawn.pool_id
              from unnest(%(variant_gids)s::text[]) as variant (gid)
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = variant.gid offset 0) as drawn),
        around as materialized (
            select id from requested_pool
             union
            select other.pool_id
              from requested_pool
             cross join lateral (select variant_gid from members
                                  where shop_id = %(shop_id)s and pool_id = requested_pool.id offset 0) as member
             cross join lateral (select pool_id from members
                                  where shop_id = %(shop_id)s and variant_gid = member.variant_gid offset 0) as other)
        select shop.version, shop.entries, clock_timestamp(), shop.stamp, pool.*,
               (select coalesce(json_object_agg(variant_gid, units_per_sale), '{}')
                  from members where shop_id = %(shop_id)s and pool_id = pool.id)
          from shared_inventories as shop
          left join (around
                     cross join lateral (
                           select id, name, unit, on_hand, held, buffer, low_stock_at, allow_negative, status::text,
                                  version, entries
                             from pools where shop_id = %(shop_id)s and id = around.id limit 1) as pool) on true
         where shop.shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "pool_ids": list(pool_ids), "variant_gids": list(variant_gids)},
    )
    [first, *_] = rows
    return ShopPosition(*first[:4]), [StockPool(*row[4:]) for row in rows if row[4] is not None]


MAX_ENTRIES_OF_CHANGE = 2_000
"""The most entries of one change: one for each pool of an import."""


async def lock_shop(tx: Tx, shop_id: int) -> None:
    """Lock a shop: no other transaction changes anything of it until this one ends."""
    await tx.run("select from shared_inventories where shop_id = %(shop_id)s for no key update", {"shop_id": shop_id})


async def lock_and_locate(tx: Tx, shop_id: int) -> ShopPosition:
    """Lock a shop like `lock_shop`, and wait until it is locked."""
    # A row that somebody has changed meanwhile is read again with its lock, and the time too.
    [row] = await tx.tuples(
        """
        select version, entries, clock_timestamp(), stamp from shared_inventories
         where shop_id = %(shop_id)s for no key update
        """,
        {"shop_id": shop_id},
    )
    return ShopPosition(*row)


async def present_version(reader: Reader, shop_id: int) -> int:
    return await reader.value(
        "select version from shared_inventories where shop_id = %(shop_id)s", {"shop_id": shop_id}
    )


async def bump(tx: Tx, shop_id: int) -> int:
    """Count a change that is not in the ledger. Returns the new version of the shop, which must be locked."""
    return await tx.value(
        "update shared_inventories set version = version + 1 where shop_id = %(shop_id)s returning version",
        {"shop_id": shop_id},
    )


async def insert_entries(tx: Tx, shop_id: int, version: int, stamp: int, entries: EntryRows) -> None:
    """Add entries to the ledger, and set the shop's version and stamp; a trigger changes the balances of the pools."""
    await tx.run(
        """
        with counted as (
            update shared_inventories set version = %(version)s, stamp = %(stamp)s, entries = entries + %(count)s
             where shop_id = %(shop_id)s)
        insert into ledger (shop_id, id, pool_id, seq, delta, held_delta, balance_after, held_after, version,
                            reverts_id, hold_id, kind, below_zero, actor, actor_id, agent_name, source, source_ref,
                            reason, idempotency_key, by_variant, created_at, heard_at)
        select %(shop_id)s, number[n], number[n + 1], number[n + 2], number[n + 3], number[n + 4], number[n + 5],
               number[n + 6], number[n + 7], nullif(number[n + 8], 0), nullif(number[n + 9], 0), kind, below_zero,
               actor, actor_id, agent_name, source, source_ref, reason, idempotency_key, by_variant, %(now)s,
               -- Once, and not for each entry as the default of the column.
               (select nullif(current_setting('holdfast.heard_at', true), '')::timestamptz)
          from (select %(numbers)s::bigint[] as number) as entry
         cross join generate_series(1, %(last)s, %(width)s) as n
          join json_to_recordset(%(causes)s) as cause (
               place bigint, kind entry_kind, below_zero boolean, actor text, actor_id bigint, agent_name text,
               source text, source_ref text, reason text, idempotency_key text, by_variant jsonb)
            on place = number[n + 10]
        """,
        {
            "shop_id": shop_id,
            "version": version,
            "stamp": stamp,
            "now": entries.now,
            "numbers": entries.numbers_text(),
            "width": WIDTH,
            "last": WIDTH * entries.count,
            "count": entries.count,
            "causes": entries.causes_text(),
        },
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
        select %(shop_id)s, hold.id, line.key::bigint, line.value::bigint
          from hold cross join lateral json_each_text(hold.lines) as line
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


async def expired_holds(reader: Reader, limit: int) -> Mapping[int, list[int]]:
    """The ids of expired holds by shop, of at most a thousand shops.

    limit    the most holds of one shop
    """
    rows = await reader.tuples(
        """
        -- An index is searched for a moment that is reckoned once; clock_timestamp() itself is reckoned for each row.
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


async def next_expiry(reader: Reader, excluded_ids: Sequence[int] = ()) -> float | None:
    """The seconds until the next hold expires. Holds of the excluded shops do not count."""
    return await reader.value(
        """
        select extract(epoch from min(expires_at) - clock_timestamp())::float from holds
         where released_at is null and shop_id <> all(%(excluded_ids)s)
        """,
        {"excluded_ids": list(excluded_ids)},
    )


async def find_entry(reader: Reader, shop_id: int, id: int) -> tuple[Entry, int | None] | None:
    """An entry, and the id of the entry that reverted it."""
    entries = await _entries(reader, "where shop_id = %(shop_id)s and id = %(id)s", shop_id=shop_id, id=id)
    if not entries:
        return None
    reverted_by = await reader.value(
        "select id from ledger where shop_id = %(shop_id)s and reverts_id = %(id)s", {"shop_id": shop_id, "id": id}
    )
    return entries[0], reverted_by


async def entries_of_change(reader: Reader, shop_id: int, entry: Entry) -> list[Entry]:
    """All entries of the change that an entry belongs to. Their ids are close to one another."""
    return await _entries(
        reader,
        """
        where shop_id = %(shop_id)s and version = %(version)s and id between %(id)s - %(most)s and %(id)s + %(most)s
        order by id
        """,
        shop_id=shop_id,
        version=entry.version,
        id=entry.id,
        most=MAX_ENTRIES_OF_CHANGE,
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
