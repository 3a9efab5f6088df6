"""Statements on prices."""

from holdfast.events.pricing.model import PriceChange, Reason
from holdfast.events.settings import Tx


async def organizer_of(tx: Tx, event_id: int) -> int | None:
    return await tx.value("select organizer_id from events where id = %(id)s", {"id": event_id})


async def list_price_changes(tx: Tx, event_id: int) -> list[PriceChange]:
    return await tx.rows(
        PriceChange,
        """
        select id, reason, "timestamp", event_id, original_price, new_price
          from price_changes where event_id = %(event_id)s order by id desc
        """,
        {"event_id": event_id},
    )


async def insert_price_change(
    tx: Tx, event_id: int, reason: Reason, original_price: int | None, new_price: int
) -> None:
    await tx.run(
        """
        insert into price_changes (event_id, reason, original_price, new_price)
        values (%(event_id)s, %(reason)s, %(original_price)s, %(new_price)s)
        """,
        {"event_id": event_id, "reason": reason, "original_price": original_price, "new_price": new_price},
    )
