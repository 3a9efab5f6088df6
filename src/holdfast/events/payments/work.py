"""The background work with the payment processor."""

from holdfast.events.payments import checkout, disputes, due, onboarding, refunding
from holdfast.events.resources import Database

LINES = (checkout.OPENING, checkout.FOLLOWING, disputes.LINE, refunding.LINE, onboarding.LINE)


async def run(database: Database) -> None:
    """Open and follow payments, make refunds, and ask about accounts and disputes, until cancelled."""
    await due.run(database, LINES)
