"""Whether the books are right: what pools hold against what their ledger says, and holds against what is kept."""

from holdfast.inventory.settings import Tx


async def audit(tx: Tx) -> list[str]:
    """Every difference, in words; none is as it must be."""
    rows = await tx.tuples(
        """
        select id, on_hand, held, entries, delta, held_delta, number, last_balance, last_seq, kept
          from pools
         cross join lateral (
               select coalesce(sum(delta), 0) as delta, coalesce(sum(held_delta), 0) as held_delta, count(*) as number,
                      coalesce(max(seq), 0) as last_seq
                 from ledger where pool_id = pools.id) as counted
         cross join lateral (
               select coalesce(sum(quantity), 0) as kept
                 from hold_lines join holds on holds.shop_id = hold_lines.shop_id and holds.id = hold_id
                where pool_id = pools.id and released_at is null) as holding
          left join lateral (
               select balance_after as last_balance from ledger where pool_id = pools.id order by seq desc limit 1
               ) as last on true
         where (on_hand, held, entries) <> (delta, held_delta, number) or number <> last_seq
            or on_hand <> coalesce(last_balance, 0) or held <> kept
         order by id
        """
    )
    return [
        f"Pool {id}: on_hand {on_hand}, its ledger sums to {delta}, its last balance is {last or 0}; "
        f"held {held}, its ledger sums to {held_delta}, active holds keep {kept}; "
        f"{entries} entries counted, {number} found, the last is number {last_seq}."
        for id, on_hand, held, entries, delta, held_delta, number, last, last_seq, kept in rows
    ]
