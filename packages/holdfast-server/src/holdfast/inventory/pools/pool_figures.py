"""Figures of pools, as lists of pools show them: the stock of two weeks, what was sold, and how long it lasts."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.inventory.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command

FIGURE_DAYS = 14
"""How many days the figures are of, the last of them today, in UTC."""

MIN_SALES_DAYS = 3
"""Days from the first sale until there is enough to tell for how long a quantity lasts."""


class GetPoolFigures(Command):
    """Get the figures of pools."""

    pool_ids: Annotated[Sequence[int], Meta(max_length=200)]


class PoolFigures(Struct):
    """The figures of a pool.

    levels          on hand at the end of each of 14 days, the last of them now; None: there was no pool yet
    first_level     on hand before or after the first change in these days, whichever is more; None: there was none
    sold            units that sales took in these days, less those that came back
    sales_days      days since the first known sale, this one included; 0: there was none
    sync            whether the platform has what the pool has; `pending`: it is being told; None: nothing is told
    picture         the address of a picture of what draws on it; None: there is none
    """

    pool_id: int
    levels: list[int | None]
    first_level: int | None
    sold: int
    sales_days: int
    sync: Literal["same", "pending", "different"] | None
    picture: str | None

    @property
    def known_levels(self) -> list[int]:
        """The levels since there is a pool."""
        return [level for level in self.levels if level is not None]

    def full_bar(self, available: int, low_stock_at: int | None) -> int:
        """The level at which the bar of the pool is full: the most at the beginning or end of a day.

        At least twice its `low_stock_at`.
        """
        return max(*self.known_levels, self.first_level or 0, available, 2 * (low_stock_at or 0), 1)

    def days_of_cover(self, available: int) -> float | None:
        """For how many days a quantity lasts at the pace since the first sale; None if too little is known."""
        if self.sold <= 0 or self.sales_days < MIN_SALES_DAYS:
            return None
        return available * min(self.sales_days, FIGURE_DAYS) / self.sold


async def get_pool_figures(reader: Reader, caller: Caller, command: GetPoolFigures) -> dict[int, PoolFigures]:
    """The figures of pools by their ids."""
    rows = await reader.rows(
        PoolFigures,
        """
        with today as materialized (select date_trunc('day', now() at time zone 'UTC') as day)
        select pool.id as pool_id,
               array(select balance_after
                       from generate_series(1 - %(days)s, 0) as step
                       left join lateral (
                            select balance_after from ledger
                             where ledger.shop_id = %(shop_id)s and pool_id = pool.id
                               and created_at < (today.day + make_interval(days => step + 1)) at time zone 'UTC'
                             order by created_at desc, seq desc limit 1) as last on true
                      order by step) as levels,
               (select greatest(balance_after - delta, balance_after) from ledger
                 where ledger.shop_id = %(shop_id)s and pool_id = pool.id
                   and created_at >= (today.day + make_interval(days => 1 - %(days)s)) at time zone 'UTC'
                 order by created_at, seq limit 1) as first_level,
               (select coalesce(sum(taken - returned), 0)::bigint from drawn
                 where drawn.shop_id = %(shop_id)s and pool_id = pool.id
                   and drawn.day > today.day::date - %(days)s and source in ('webhook', 'record_sale')) as sold,
               (select coalesce(today.day::date - min(drawn.day) + 1, 0) from drawn
                 where drawn.shop_id = %(shop_id)s and pool_id = pool.id
                   and source in ('webhook', 'record_sale')) as sales_days,
               (select case when bool_or(parked is not null or expected <> available) then 'different'
                            when bool_or(target <> available) then 'pending' when count(*) > 0 then 'same' end
                  from members
                  join catalog_variants as catalog on catalog.shop_id = %(shop_id)s and catalog.gid = variant_gid
                  join levels on levels.shop_id = %(shop_id)s and levels.item_gid = catalog.item_gid
                 where members.shop_id = %(shop_id)s and members.pool_id = pool.id and target is not null) as sync,
               (select picture from members
                  join catalog_variants as catalog on catalog.shop_id = %(shop_id)s and catalog.gid = variant_gid
                 where members.shop_id = %(shop_id)s and members.pool_id = pool.id and picture is not null
                 order by units_per_sale, variant_gid limit 1) as picture
          from unnest(%(ids)s::bigint[]) as pool (id) cross join today
        """,
        {"shop_id": caller.tenant, "ids": [*command.pool_ids], "days": FIGURE_DAYS},
    )
    return {row.pool_id: row for row in rows}
