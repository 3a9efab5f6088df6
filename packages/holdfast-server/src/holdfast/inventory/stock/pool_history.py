"""The history of a pool as pages show it: its stock over time, the sums of what was taken, and undone entries.

Agents read the entries alone (`operations.history`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from holdfast.inventory.problems import no_pool
from holdfast.inventory.resources import Reader
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.model import Entry, EntryKind, PoolId
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, Id
from holdfast.kit.contract.problems import NOT_FOUND, refuses

CHART_DAYS = 30
"""How many days before today, in UTC, the chart of a pool begins."""

STEPS = 60
"""How many moments of stock the chart has after the first, before the newest changes."""

MAX_NEWEST_CHANGES = 200
"""The most changes that the chart shows one by one, the newest. More would not be visible."""

MAX_NAMED_DRAWS = 20
"""How many variants are listed one by one, those that took most first. All others are summed up."""


class GetPoolHistory(Command):
    pool_id: PoolId


class GetUndoStatus(Command):
    """Get which of the entries have been undone, and which took a hold that is still there."""

    entry_ids: Annotated[list[int], Meta(max_length=500)]


class UndoStatus(NamedTuple):
    """The ids of some entries: those that were reverted, and those whose hold has not ended."""

    reverted_ids: frozenset[int]
    held_ids: frozenset[int]


class GetEntry(Command):
    """Get one entry of the history of a pool."""

    pool_id: PoolId
    entry_id: Id


class VariantEntry(NamedTuple):
    """What one entry took of its pool for one variant.

    units    units of the pool
    """

    entry_id: int
    pool_id: int
    variant_gid: str
    units: int
    at: datetime


class ListUnitsPerSale(Command):
    """Get how many units one sale of a variant took when an entry was made."""

    entries: Annotated[Sequence[VariantEntry], Meta(max_length=500)]


class StockMoment(Struct):
    """The stock of a pool from a moment on. `kind`: of the entry that changed it then; None: nothing did."""

    at: datetime
    on_hand: int
    kind: EntryKind | None


class DrawSum(Struct):
    """What one variant, or one source, took of a pool. A source is a tool, a job, or the orders.

    name        id of the variant or name of the source; empty: variant not known; None: all others together
    times       how often units were taken
    taken       units of the pool
    returned    units of the pool that came back, when orders were cancelled or refunded
    """

    name: str | None
    times: int
    taken: int
    returned: int


class PoolHistory(Struct):
    """The stock of a pool in the last 30 days and today, or since its first entry.

    moments        where the chart begins, each change, and now
    by_variant     the largest first; unknown variants, and all others, come last
    by_source      the same units by source
    """

    moments: list[StockMoment]
    by_variant: list[DrawSum]
    by_source: list[DrawSum]


@refuses(NOT_FOUND)
async def get_pool_history(reader: Reader, caller: Caller, command: GetPoolHistory) -> PoolHistory:
    """The stock of a pool over time, and the sums of what was taken."""
    params = {"shop_id": caller.tenant, "pool_id": command.pool_id, "days": CHART_DAYS}
    moments = await _moments(reader, params)
    if not moments:
        raise no_pool(command.pool_id)
    draw_rows = await reader.tuples(
        """
        with sums as (
            select grouping(variant_gid) = 0 as is_variant, coalesce(variant_gid, source) as name,
                   sum(times) as times, sum(taken) as taken, sum(returned) as returned,
                   row_number() over (partition by grouping(variant_gid) order by sum(taken) desc) as place
              from drawn
             where shop_id = %(shop_id)s and pool_id = %(pool_id)s
               and day >= (%(since)s::timestamptz at time zone 'UTC')::date
             group by grouping sets ((variant_gid), (source))),
        named_sums as (
            select is_variant, case when place <= %(max_count)s or name = '' then name end as name,
                   times, taken, returned
              from sums)
        select is_variant, name, sum(times)::bigint, sum(taken)::bigint, sum(returned)::bigint
          from named_sums group by is_variant, name
         order by nullif(name, '') is null, name is null, sum(taken) desc, name
        """,
        {**params, "since": moments[0].at, "max_count": MAX_NAMED_DRAWS},
    )
    by_variant = [DrawSum(*row) for is_variant, *row in draw_rows if is_variant]
    return PoolHistory(moments, by_variant, [DrawSum(*row) for is_variant, *row in draw_rows if not is_variant])


async def _moments(reader: Reader, params: Mapping[str, Any]) -> list[StockMoment]:
    """Where the chart of a pool begins, the changes of its stock, and now; nothing if there is no such pool.

    The newest changes come one by one; of those before, the last one of each step.
    """
    moments = await reader.rows(
        StockMoment,
        """
        -- Materialized, so that each moment is computed once and then looked up by the index.
        with begun as materialized (
            select id, greatest(coalesce((select min(created_at) from ledger
                                          where ledger.shop_id = %(shop_id)s and pool_id = pools.id),
                                         inserted_at),
                                (date_trunc('day', now() at time zone 'UTC') - make_interval(days => %(days)s))
                                    at time zone 'UTC') as since
              from pools where shop_id = %(shop_id)s and id = %(pool_id)s),
        moments as materialized (
            select id, step, since + (now() - since) * least(step::float / %(steps)s, 1) as at
              -- The last two are now: one for what has changed since the one before, one for the end of the line.
              from begun cross join generate_series(0, %(steps)s + 1) as step),
        states as (
            select step, at, coalesce(balance_after, 0) as on_hand, kind, changed_at,
                   step > 0 and changed_at > lag(at) over (order by step) as is_change
              from moments
              left join lateral (
                   select balance_after, kind, created_at as changed_at from ledger
                    where shop_id = %(shop_id)s and pool_id = moments.id and created_at <= at
                    order by created_at desc, seq desc limit 1) as last on true)
        select case when is_change then changed_at else at end as at, on_hand,
               case when is_change then kind::text end as kind
          from states where is_change or step in (0, %(steps)s + 1)
         order by step
        """,
        {**params, "steps": STEPS},
    )
    if not moments:
        return []
    begin, *changes, now = moments
    newest = await reader.rows(
        StockMoment,
        """
        select created_at as at, balance_after as on_hand, kind::text as kind from ledger
         where shop_id = %(shop_id)s and pool_id = %(pool_id)s and created_at > %(since)s
         order by created_at desc, seq desc limit %(max_count)s
        """,
        {**params, "since": begin.at, "max_count": MAX_NEWEST_CHANGES},
    )
    before = [change for change in changes if change.at < newest[-1].at] if len(newest) == MAX_NEWEST_CHANGES else []
    return [begin, *before, *reversed(newest), now]


async def get_undo_status(reader: Reader, caller: Caller, command: GetUndoStatus) -> UndoStatus:
    """Which of the entries have been undone, and which took a hold that is still there."""
    [row] = await reader.tuples(
        """
        select array(select reverts_id from ledger where shop_id = %(shop_id)s and reverts_id = any(%(ids)s)),
               array(select ledger.id from ledger
                       join holds on holds.shop_id = %(shop_id)s and holds.id = hold_id and released_at is null
                      where ledger.shop_id = %(shop_id)s and ledger.id = any(%(ids)s) and kind = 'hold')
        """,
        {"shop_id": caller.tenant, "ids": command.entry_ids},
    )
    return UndoStatus(*map(frozenset[int], row))


async def get_entry(reader: Reader, caller: Caller, command: GetEntry) -> Entry | None:
    """Read an entry; None if the pool has no such entry."""
    entry_and_reversal = await sql.find_entry(reader, caller.tenant, command.entry_id)
    entry = entry_and_reversal[0] if entry_and_reversal else None
    return entry if entry and entry.pool_id == command.pool_id else None


async def list_units_per_sale(reader: Reader, caller: Caller, command: ListUnitsPerSale) -> list[int | None]:
    """The units that one sale of each variant took at the time of the entry; None where it was not linked."""
    rows = await reader.tuples(
        """
        select links.units_per_sale
          from unnest(%(pool_ids)s::bigint[], %(gids)s::text[], %(moments)s::timestamptz[])
               with ordinality as entry (pool_id, variant_gid, at, position)
          left join lateral (
               select units_per_sale from links
                where shop_id = %(shop_id)s and pool_id = entry.pool_id and variant_gid = entry.variant_gid
                  and since <= entry.at and entry.at < until limit 1) as links on true
         order by position
        """,
        {
            "shop_id": caller.tenant,
            "pool_ids": [entry.pool_id for entry in command.entries],
            "gids": [entry.variant_gid for entry in command.entries],
            "moments": [entry.at for entry in command.entries],
        },
    )
    return [units for (units,) in rows]
