"""Who gets a freed seat: the first on the waiting list, in the transaction that freed it."""

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations import sql
from holdfast.events.resources import Tx


async def pass_on(tx: Tx, event_id: int, *, except_user: str | None = None) -> None:
    """Give freed seats to the waiting list, and compute the price again."""
    await promote(tx, event_id, except_user=except_user)
    await reprice(tx, [event_id], "registration")


async def promote(tx: Tx, event_id: int, *, except_user: str | None = None) -> None:
    """Give every free seat of an active event to the waiting list, in order of arrival.

    The caller has locked the event. `except_user` is the public id of a person who was just put on the list, and who
    gets no seat.
    """
    await sql.promote(tx, event_id, except_user)
