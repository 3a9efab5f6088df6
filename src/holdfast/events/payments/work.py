"""The background work with the payment processor."""

from holdfast.events.payments import checkout, due, onboarding, refunding
from holdfast.events.resources import Database

LINES = (checkout.OPENING, checkout.FOLLOWING, refunding.LINE, onboarding.LINE)


async def run(database: Database) -> None:
    """Open and follow payments, make refunds, and ask about accounts, until cancelled."""
    await due.run(database, LINES)
