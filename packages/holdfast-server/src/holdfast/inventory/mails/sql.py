"""Statements for mails."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from holdfast.inventory.resources import Reader
from holdfast.kit.mail.outbox import Mail


class LowPool(Struct, frozen=True):
    """A low pool for the mail to one merchant, in the merchant's language."""

    name: str
    unit: str
    available: int
    low_stock_at: int
    language: str | None


async def find_low_pools(reader: Reader, mails: Sequence[Mail]) -> Mapping[int, LowPool]:
    """Return the pools of mails, by the ids of the mails, without those that are no longer low or whose merchant has
    turned the mails off.
    """
    rows = await reader.tuples(
        """
        select mail.mail_id, pools.name, pools.unit, greatest(0, on_hand - held - buffer), low_stock_at,
               merchants.language
          from unnest(%(mails)s::bigint[], %(pools)s::bigint[], %(merchants)s::bigint[])
               as mail (mail_id, pool_id, merchant_id)
          join pools on pools.id = mail.pool_id
          join merchants on merchants.id = mail.merchant_id and merchants.shop_id = pools.shop_id
         where is_low and status = 'active' and wants_low_stock
        """,
        {
            "mails": [mail.id for mail in mails],
            "pools": [mail.arguments["pool_id"] for mail in mails],
            "merchants": [mail.arguments["merchant_id"] for mail in mails],
        },
    )
    return {id: LowPool(*rest) for id, *rest in rows}
