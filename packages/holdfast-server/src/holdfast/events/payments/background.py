"""The background work with the payment processor."""

from holdfast.events.payments import checkout, disputes, due, onboarding, refunds
from holdfast.events.resources import Database

DUE_TABLES = (checkout.OPENING, checkout.FOLLOWING, disputes.DUE_TABLE, refunds.DUE_TABLE, onboarding.DUE_TABLE)


async def run(database: Database) -> None:
    """Open and follow payments, make refunds, and poll accounts and disputes, until cancelled."""
    await due.run(database, DUE_TABLES)
