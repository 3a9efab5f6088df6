"""Freed seats: the first on the waiting list gets one, in the transaction that freed it."""

from collections.abc import Sequence

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations import sql
from holdfast.events.registrations.payment_opening import open_payments
from holdfast.events.resources import Tx


async def refill_seats(tx: Tx, event_ids: Sequence[int]) -> None:
    """Give freed seats to the waiting lists, and compute the prices again."""
    await promote(tx, event_ids)
    await reprice(tx, event_ids, "registration")


async def promote(tx: Tx, event_ids: Sequence[int]) -> None:
    """Give every free seat of active events to their waiting lists, in order of arrival.

    A person who has to pay gets a held seat. The caller has locked the events. A person who was put on the waiting
    list by hand gets none.
    """
    if await sql.promote(tx, event_ids):
        await open_payments(tx, event_ids)
