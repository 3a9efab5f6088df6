"""Who gets a freed seat: the first on the waiting list, in the transaction that freed it."""

from collections.abc import Sequence

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations import sql
from holdfast.events.registrations.opening import open_payments
from holdfast.events.resources import Tx


async def pass_on(tx: Tx, event_ids: Sequence[int], *, except_user: str | None = None) -> None:
    """Give freed seats to the waiting lists, and compute the prices again."""
    await promote(tx, event_ids, except_user=except_user)
    await reprice(tx, event_ids, "registration")


async def promote(tx: Tx, event_ids: Sequence[int], *, except_user: str | None = None) -> None:
    """Give every free seat of active events to their waiting lists, in order of arrival.

    Who has to pay gets a seat that is held. The caller has locked the events. `except_user` is the public id of a
    person who was just put on the list, and who gets no seat.
    """
    if await sql.promote(tx, event_ids, except_user):
        await open_payments(tx, event_ids)
