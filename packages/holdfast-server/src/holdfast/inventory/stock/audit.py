"""Compares each pool with the sums of its ledger, and its held quantity with its active holds."""

from typing import Any

from holdfast.kit.postgres import database


async def shops(reader: database.Reader[Any]) -> list[int]:
    """The ids of all shops."""
    return [id for (id,) in await reader.tuples("select id from shops order by id")]


async def audit(reader: database.Reader[Any], shop_id: int) -> list[str]:
    """Return one sentence for each difference in the ledger of a shop. A sound ledger has none."""
    rows = await reader.tuples(
        """
        with counted as (
            select pool_id, sum(delta) as delta, sum(held_delta) as held_delta, count(*) as number,
                   max(array[seq, balance_after]) as last
              from ledger where shop_id = %(shop_id)s group by pool_id),
        holding as (
            select pool_id, sum(quantity) as held_quantity
              from holds join hold_lines on hold_lines.shop_id = holds.shop_id and hold_id = holds.id
             where holds.shop_id = %(shop_id)s and released_at is null group by pool_id)
        select id, on_hand, held, entries, coalesce(delta, 0), coalesce(held_delta, 0), coalesce(number, 0),
               coalesce(last[2], 0), coalesce(last[1], 0), coalesce(held_quantity, 0)
          from pools
          left join counted on counted.pool_id = pools.id
          left join holding on holding.pool_id = pools.id
         where pools.shop_id = %(shop_id)s
           and ((on_hand, held, entries) <> (coalesce(delta, 0), coalesce(held_delta, 0), coalesce(number, 0))
                or coalesce(number, 0) <> coalesce(last[1], 0) or on_hand <> coalesce(last[2], 0)
                or held <> coalesce(held_quantity, 0))
         order by id
        """,
        {"shop_id": shop_id},
    )
    return [
        f"Pool {id}: on_hand {on_hand}, its ledger sums to {delta}, its last balance is {last}; "
        f"held {held}, its ledger sums to {held_delta}, active holds keep {in_holds}; "
        f"{entries} entries counted, {number} found, the last is number {last_seq}."
        for id, on_hand, held, entries, delta, held_delta, number, last, last_seq, in_holds in rows
    ]
