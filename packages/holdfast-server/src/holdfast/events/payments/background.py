"""The background work with the payment processor."""

from holdfast.events.payments import checkout, due, payout_accounts, refunds
from holdfast.events.resources import Database

DUE_TABLES = (checkout.OPENING, checkout.FOLLOWING, refunds.DISPUTES, refunds.REFUNDS, payout_accounts.DUE_TABLE)


async def run(database: Database) -> None:
    """Open and follow payments, make refunds, and poll accounts and disputes, until cancelled."""
    await due.run(database, DUE_TABLES)
