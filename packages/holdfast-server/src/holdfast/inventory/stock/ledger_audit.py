"""The audit of the ledger: each pool beside the sums of its ledger, and what it holds beside its active holds."""

from typing import Any

from msgspec import Struct

from holdfast.kit.postgres import database


async def list_shop_ids(reader: database.Reader[Any]) -> list[int]:
    """The ids of all shops."""
    return [id for (id,) in await reader.tuples("select id from shops order by id")]


class _AuditRow(Struct):
    """A pool, beside what its ledger and its active holds add up to."""

    id: int
    on_hand: int
    held: int
    entries: int
    delta: int
    held_delta: int
    number: int
    last_balance: int
    last_seq: int
    in_holds: int


async def audit(reader: database.Reader[Any], shop_id: int) -> list[str]:
    """One sentence for each difference in the ledger of a shop. A sound ledger has none."""
    rows = await reader.rows(
        _AuditRow,
        """
        with counted as (
            select pool_id, sum(delta) as delta, sum(held_delta) as held_delta, count(*) as number,
                   max(array[seq, balance_after]) as last
              from ledger where shop_id = %(shop_id)s group by pool_id),
        holding as (
            select pool_id, sum(quantity) as held_quantity
              from holds join hold_lines on hold_lines.shop_id = holds.shop_id and hold_id = holds.id
             where holds.shop_id = %(shop_id)s and released_at is null group by pool_id)
        select id, on_hand, held, entries, coalesce(delta, 0) as delta, coalesce(held_delta, 0) as held_delta,
               coalesce(number, 0) as number, coalesce(last[2], 0) as last_balance, coalesce(last[1], 0) as last_seq,
               coalesce(held_quantity, 0) as in_holds
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
        f"Pool {row.id}: on_hand {row.on_hand}, its ledger sums to {row.delta}, its last balance is "
        f"{row.last_balance}; held {row.held}, its ledger sums to {row.held_delta}, active holds keep {row.in_holds}; "
        f"{row.entries} entries counted, {row.number} found, the last is number {row.last_seq}."
        for row in rows
    ]
