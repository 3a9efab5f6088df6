"""Statements for mails."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from holdfast.inventory.resources import Reader
from holdfast.kit.outbox import Mail


class LowPool(Struct, frozen=True):
    """A pool that is low now, for somebody who wants to know, in a language."""

    name: str
    unit: str
    available: int
    low_stock_at: int
    language: str | None


async def find(reader: Reader, mails: Sequence[Mail]) -> Mapping[int, LowPool]:
    """The pools of mails, by the ids of the mails; without those that are not low any more or of which nobody wants to
    know.
    """
    rows = await reader.tuples(
        """
        select asked.mail_id, pools.name, pools.unit, greatest(0, on_hand - held - buffer), low_stock_at,
               merchants.language
          from unnest(%(mails)s::bigint[], %(pools)s::bigint[], %(merchants)s::bigint[])
               as asked (mail_id, pool_id, merchant_id)
          join pools on pools.id = asked.pool_id
          join merchants on merchants.id = asked.merchant_id and merchants.shop_id = pools.shop_id
         where is_low and status = 'active' and wants_low_stock
        """,
        {
            "mails": [each.id for each in mails],
            "pools": [each.arguments["pool_id"] for each in mails],
            "merchants": [each.arguments["merchant_id"] for each in mails],
        },
    )
    return {id: LowPool(*rest) for id, *rest in rows}
