"""What the pages of a pool show beside the operations of agents: its stock over time, who drew what in that time, and
which entries have been undone.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.inventory.problems import no_pool
from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.model import PoolId
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import NOT_FOUND, refuses

DAYS = 30
"""How many whole days, in UTC, the picture of a pool goes back before today."""

STEPS = 60
"""Moments at which the stock is read, besides the first: more would be finer than anybody sees."""

MOST_DRAWN = 20
"""So many variants are shown by themselves, those that took most; the others are one."""


class LookAtPool(Command):
    pool_id: PoolId


class ListUndone(Command):
    """Asks which entries of the history have been undone."""

    entry_ids: Annotated[list[int], Meta(max_length=500)]


class Moment(Struct):
    """What a pool held at a moment."""

    at: datetime
    on_hand: int
    held: int


class Drawn(Struct):
    """What drew on a pool: a variant, by its id, or a source, which is a tool, a job, or the orders.

    name        empty: no variant is known of it. None: all others together
    times       how often something was taken
    taken       units of the pool
    returned    units of it that came back, when orders were cancelled or refunded
    """

    name: str | None
    times: int
    taken: int
    returned: int


class Look(Struct):
    """A pool in the last 30 days and today, or since its first entry.

    moments        the oldest first
    by_variant     what took most first; what no variant is known of, and all others, come last
    by_source      the same units once more, by what took them
    """

    moments: list[Moment]
    by_variant: list[Drawn]
    by_source: list[Drawn]


@refuses(NOT_FOUND)
async def look(reader: Reader, caller: Caller, command: LookAtPool) -> Look:
    """How the stock of a pool went, and who drew what."""
    named = {"shop_id": caller.tenant, "pool_id": command.pool_id, "days": DAYS}
    moments = await reader.rows(
        Moment,
        """
        -- Materialized, so that each moment is reckoned once and then looked up by the index.
        with begun as materialized (
            select id, greatest(coalesce((select min(created_at) from ledger
                                          where ledger.shop_id = %(shop_id)s and pool_id = pools.id),
                                         inserted_at),
                                (date_trunc('day', now() at time zone 'UTC') - make_interval(days => %(days)s))
                                    at time zone 'UTC') as since
              from pools where shop_id = %(shop_id)s and id = %(pool_id)s),
        moments as materialized (
            select id, step, since + (now() - since) * (step::float / %(steps)s) as at
              from begun cross join generate_series(0, %(steps)s) as step)
        select at, coalesce(balance_after, 0) as on_hand, coalesce(held_after, 0) as held
          from moments
          left join lateral (
               select balance_after, held_after from ledger
                where shop_id = %(shop_id)s and pool_id = moments.id and created_at <= at
                order by created_at desc, seq desc limit 1) as last on true
         order by step
        """,
        {**named, "steps": STEPS},
    )
    if not moments:
        raise no_pool(command.pool_id)
    drawn = await reader.tuples(
        """
        with sums as (
            select grouping(variant_gid) = 0 as is_variant, coalesce(variant_gid, source) as name,
                   sum(times) as times, sum(taken) as taken, sum(returned) as returned,
                   row_number() over (partition by grouping(variant_gid) order by sum(taken) desc) as place
              from drawn
             where shop_id = %(shop_id)s and pool_id = %(pool_id)s
               and day >= (%(since)s::timestamptz at time zone 'UTC')::date
             group by grouping sets ((variant_gid), (source))),
        shown as (
            select is_variant, case when place <= %(most)s or name = '' then name end as name, times, taken, returned
              from sums)
        select is_variant, name, sum(times)::bigint, sum(taken)::bigint, sum(returned)::bigint
          from shown group by is_variant, name
         order by nullif(name, '') is null, name is null, sum(taken) desc, name
        """,
        {**named, "since": moments[0].at, "most": MOST_DRAWN},
    )
    by_variant = [Drawn(*row) for is_variant, *row in drawn if is_variant]
    return Look(moments, by_variant, [Drawn(*row) for is_variant, *row in drawn if not is_variant])


async def list_undone(reader: Reader, caller: Caller, command: ListUndone) -> list[int]:
    """Which of some entries have been undone."""
    rows = await reader.tuples(
        "select reverts_id from ledger where shop_id = %(shop_id)s and reverts_id = any(%(ids)s)",
        {"shop_id": caller.tenant, "ids": command.entry_ids},
    )
    return [id for (id,) in rows]
