"""Who gets a freed seat: the first on the waiting list, in the transaction that freed it."""

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations import sql
from holdfast.events.settings import Tx


async def pass_on(tx: Tx, event_id: int, *, but_not: str | None = None) -> None:
    """Pass on seats that were freed, and bring the price up to date."""
    await promote(tx, event_id, but_not=but_not)
    await reprice(tx, [event_id], "registration")


async def promote(tx: Tx, event_id: int, *, but_not: str | None = None) -> None:
    """Give every free seat of an active event to the waiting list, in order of arrival.

    The caller has locked the event. `but_not` is the public id of someone who has just been put on the list.
    """
    await sql.promote(tx, event_id, but_not)
