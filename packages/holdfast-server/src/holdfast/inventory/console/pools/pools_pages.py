"""The first page of the console: the shop's pools, with figures of each, and those that run low."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ListLowStock, LowStockList
from holdfast.inventory.console.frame import HOME, Console, merchant, picture_values, shop_of
from holdfast.inventory.console.number_fields import NumberField, read_numbers
from holdfast.inventory.cursor import CursorPage, cursor_page
from holdfast.inventory.installs.operations import GetConnection
from holdfast.inventory.pools.model import GetPool, ListPools, Pool, PoolList
from holdfast.inventory.resources import Reader
from holdfast.inventory.settings import Settings
from holdfast.inventory.stock.model import MAX_QUANTITY, Filled
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, check
from holdfast.kit.contract.messages import translatable
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.pages.forms import FormRefusal, try_form

DAYS = 14
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

        At least twice its limit.
        """
        return max(*self.known_levels, self.first_level or 0, available, 2 * (low_stock_at or 0), 1)

    def days_of_cover(self, available: int) -> float | None:
        """For how many days a quantity lasts at the pace since the first sale; None if too little is known."""
        if self.sold <= 0 or self.sales_days < MIN_SALES_DAYS:
            return None
        return available * min(self.sales_days, DAYS) / self.sold


class ListUnsyncedPools(CursorPage):
    """List pools of which the platform has another quantity."""

    query: Filled | None = None


class UnsyncedPools(Struct):
    """The ids of pools."""

    pool_ids: list[int]
    next_cursor: str | None


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
                  join catalog_variants as known on known.shop_id = %(shop_id)s and known.gid = variant_gid
                  join levels on levels.shop_id = %(shop_id)s and levels.item_gid = known.item_gid
                 where members.shop_id = %(shop_id)s and members.pool_id = pool.id and target is not null) as sync,
               (select picture from members
                  join catalog_variants as known on known.shop_id = %(shop_id)s and known.gid = variant_gid
                 where members.shop_id = %(shop_id)s and members.pool_id = pool.id and picture is not null
                 order by units_per_sale, variant_gid limit 1) as picture
          from unnest(%(ids)s::bigint[]) as pool (id) cross join today
        """,
        {"shop_id": caller.tenant, "ids": [*command.pool_ids], "days": DAYS},
    )
    return {row.pool_id: row for row in rows}


async def list_unsynced_pools(reader: Reader, caller: Caller, command: ListUnsyncedPools) -> UnsyncedPools:
    """The pools of which the platform has another quantity, by id."""
    rows = await reader.tuples(
        """
        select id from pools
         where shop_id = %(shop_id)s and id > %(after)s and status_key <> 'archived'
           and id in (select pool_id from levels
                        join catalog_variants as known on known.shop_id = %(shop_id)s
                                                       and known.item_gid = levels.item_gid
                        join members on members.shop_id = %(shop_id)s and variant_gid = known.gid
                       where levels.shop_id = %(shop_id)s and target is not null
                         and (available <> target or parked is not null))
           and (%(query)s::text is null
                or fold_text(name_key) like (select search_pattern(%(query)s)))
         order by id limit %(limit)s
        """,
        {
            "shop_id": caller.tenant,
            "after": command.after(int) or 0,
            "query": command.query,
            "limit": command.limit + 1,
        },
    )
    ids, cursor = cursor_page([id for (id,) in rows], command, lambda pool_id: pool_id)
    return UnsyncedPools(ids, cursor)


PAGE_SIZE = 50

MIN_SEARCHED_POOLS = 8
"""The number of pools from which on the page has a search and filters."""

FILTERS = {
    "": translatable("All pools"),
    "low": translatable("Low stock"),
    "unsynced": translatable("Not in sync"),
    "archived": translatable("Archived pools"),
}
"""The pools that the list can be limited to, by the value of the parameter `status`."""


class PoolsPage:
    """Answers requests for the list of pools."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console = console
        self._settings = settings
        self._list, self._pool = console.run["list_pools"], console.run["get_pool"]
        self._is_connected = console.run["is_shop_connected"]
        self._figures, self._list_unsynced = console.run["get_pool_figures"], console.run["list_unsynced_pools"]

    def routes(self) -> list[Route]:
        return [self._console.route(HOME, "pools", self.list)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the shop's pools; archived pools have a list of their own.

        A page has the oldest first. Those that need the merchant come before the others of the page.
        """
        query = read_query(request.query)
        pool_filter = query.get("status", "") if query.get("status") in FILTERS else ""
        search = query.get("q", "").strip()
        pools, cursor = await self._pools(session, pool_filter, search, query.get("cursor") or None)
        command = GetPoolFigures(pool_ids=[pool.id for pool in pools])
        figures: Mapping[int, PoolFigures]
        figures, is_connected = await asyncio.gather(
            self._figures(merchant(session), command), self._is_connected(merchant(session), GetConnection())
        )
        return self._console.page(
            session,
            request,
            "pools/pools.html",
            pools=sorted(pools, key=lambda pool: _urgency(pool, figures[pool.id])),
            figures=figures,
            after=cursor,
            pool_filter=pool_filter,
            values={"q": search, "status": pool_filter},
            filters=FILTERS,
            is_searchable=len(pools) >= MIN_SEARCHED_POOLS or any((cursor, search, pool_filter, "cursor" in query)),
            is_connected=is_connected,
            shop=shop_of(session) if self._settings.client_id else "",
            scripts=["live.js"],
            **picture_values(self._settings),
        )

    async def _pools(
        self, session: Session, pool_filter: str, search: str, cursor: str | None
    ) -> tuple[Sequence[Pool], str | None]:
        """A page of the pools of a filter whose names contain a text, and the cursor of the next page."""
        options = {"limit": PAGE_SIZE, "cursor": cursor, "query": search or None}
        if pool_filter == "unsynced":
            unsynced: UnsyncedPools = await self._list_unsynced(merchant(session), check(ListUnsyncedPools, options))
            commands = [GetPool(pool_id=id, include_members=False) for id in unsynced.pool_ids]
            pools = await asyncio.gather(*(self._pool(merchant(session), command) for command in commands))
            return pools, unsynced.next_cursor
        options |= {"status": "archived" if pool_filter == "archived" else None, "low_stock_only": pool_filter == "low"}
        pool_list: PoolList = await self._list(merchant(session), check(ListPools, options))
        return pool_list.pools, pool_list.next_cursor


def _urgency(pool: Pool, figure: PoolFigures) -> int:
    """The rank of a pool in a page: sold out, low, different in the shop, all others."""
    if pool.status != "active":
        return 3
    return 0 if pool.available <= 0 else 1 if pool.low_stock else 2 if figure.sync == "different" else 3


LOW_STOCK = "/console/low-stock"
LOW_STOCK_PAGE_SIZE = 50

MAX_COMPARED_POOLS = 200
"""The most pools of a shop for which the page says which one is closest to its limit."""

LABELS = {
    "threshold": translatable("Stock at most"),
    "days_of_cover": translatable("Or days left at most"),
}


NUMBERS = {"threshold": NumberField(0, MAX_QUANTITY, 30), "days_of_cover": NumberField(1, 365, 14)}


class LowStockPage:
    """Answers requests for the pools that run low."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console = console
        self._list, self._list_pools = console.run["list_low_stock"], console.run["list_pools"]
        self._figures, self._settings = console.run["get_pool_figures"], settings

    def routes(self) -> list[Route]:
        return [self._console.route(LOW_STOCK, "low_stock", self.answer)]

    async def answer(self, session: Session, request: Request) -> Reply:
        """List the pools at or below their limits, or below the requested ones."""
        filters = {
            name: text for name, text in read_query(request.query).items() if name in {*LABELS, "cursor"} and text
        }
        low_stock = await try_form(lambda: self._read_low_stock(session, filters))
        refusal = low_stock if isinstance(low_stock, FormRefusal) else None
        pools = low_stock if isinstance(low_stock, LowStockList) else LowStockList([], None)
        command = GetPoolFigures(pool_ids=[pool.pool_id for pool in pools.pools])
        figures: Mapping[int, PoolFigures] = await self._figures(merchant(session), command) if pools.pools else {}
        every_pool: PoolList | None = None
        if not (pools.pools or refusal or filters):
            every_pool = await self._list_pools(merchant(session), ListPools(limit=MAX_COMPARED_POOLS))
        return self._console.page(
            session,
            request,
            "pools/low_stock.html",
            refusal.status if refusal else 200,
            here=LOW_STOCK,
            pools=sorted(pools.pools, key=lambda pool: pool.available / (pool.low_stock_at or 1)),
            figures=figures,
            after=pools.next_cursor,
            values=filters,
            errors=refusal.errors if refusal else {},
            labels=LABELS,
            has_pools=every_pool is None or bool(every_pool.pools),
            closest=every_pool and _closest(every_pool),
            scripts=["live.js"],
            **picture_values(self._settings),
        )

    async def _read_low_stock(self, session: Session, filters: dict[str, str]) -> LowStockList:
        numbers, unread = read_numbers(filters, NUMBERS)
        command = check(ListLowStock, {"limit": LOW_STOCK_PAGE_SIZE, **filters, **numbers}, unread=unread)
        return await self._list(merchant(session), command)


def _closest(pool_list: PoolList) -> Pool | None:
    """The pool that is closest to its limit. None: no pool has a limit, or there are too many to compare."""
    distances = [
        (pool.available - pool.low_stock_at, pool.id, pool)
        for pool in pool_list.pools
        if pool.low_stock_at is not None and pool.status == "active"
    ]
    return min(distances)[2] if distances and not pool_list.next_cursor else None
