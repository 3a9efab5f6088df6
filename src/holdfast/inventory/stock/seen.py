"""What the pages of a pool show beside the operations of agents: its stock over time, what took from it, and which
entries have been undone.
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
"""How far the picture of a pool goes back."""

STEPS = 60
"""Moments at which the stock is read, besides the first: more would be finer than anybody sees."""

MOST_SOURCES = 10


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


class Taken(Struct):
    """What took from a pool: a tool, a job, an order."""

    source: str
    times: int
    quantity: int


class Look(Struct):
    """A pool in the last 30 days, or since its first entry: the oldest moment first, what took most first."""

    moments: list[Moment]
    taken: list[Taken]


@refuses(NOT_FOUND)
async def look(reader: Reader, caller: Caller, command: LookAtPool) -> Look:
    """How the stock of a pool went, and what took from it."""
    named = {"shop_id": caller.tenant, "pool_id": command.pool_id, "days": DAYS}
    moments = await reader.rows(
        Moment,
        """
        -- Materialized, so that each moment is reckoned once and then looked up by the index.
        with begun as materialized (
            select id, greatest(coalesce((select min(created_at) from ledger where pool_id = pools.id),
                                         inserted_at),
                                now() - make_interval(days => %(days)s)) as since
              from pools where shop_id = %(shop_id)s and id = %(pool_id)s),
        moments as materialized (
            select id, step, since + (now() - since) * (step::float / %(steps)s) as at
              from begun cross join generate_series(0, %(steps)s) as step)
        select at, coalesce(balance_after, 0) as on_hand, coalesce(held_after, 0) as held
          from moments
          left join lateral (
               select balance_after, held_after from ledger
                where pool_id = moments.id and created_at <= at
                order by created_at desc, seq desc limit 1) as last on true
         order by step
        """,
        {**named, "steps": STEPS},
    )
    if not moments:
        raise no_pool(command.pool_id)
    taken = await reader.rows(
        Taken,
        """
        select source, count(*) as times, -sum(delta)::bigint as quantity from ledger
         where shop_id = %(shop_id)s and pool_id = %(pool_id)s and delta < 0
           and created_at > now() - make_interval(days => %(days)s)
         group by source order by quantity desc, source limit %(most)s
        """,
        {**named, "most": MOST_SOURCES},
    )
    return Look(moments, taken)


async def list_undone(reader: Reader, caller: Caller, command: ListUndone) -> list[int]:
    """Which of some entries have been undone."""
    rows = await reader.tuples(
        "select reverts_id from ledger where shop_id = %(shop_id)s and reverts_id = any(%(ids)s)",
        {"shop_id": caller.tenant, "ids": command.entry_ids},
    )
    return [id for (id,) in rows]
