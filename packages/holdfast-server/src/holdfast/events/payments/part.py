"""What payments register: the routes of the processor, and the background work with it."""

import asyncio

from holdfast.events.payments import checkout, due, payout_accounts, reconciliation, refunds, webhooks
from holdfast.events.resources import Context, Database
from holdfast.kit.background.tasks import PeriodicJob, in_batches
from holdfast.kit.process.part import Doors, Part

DUE_TABLES = (checkout.OPENING, checkout.FOLLOWING, refunds.DISPUTES, refunds.REFUNDS, payout_accounts.DUE_TABLE)


async def run(database: Database) -> None:
    """Open and follow payments, make refunds, and poll accounts and disputes, until cancelled."""
    if database.resources.processor is None:
        await asyncio.Event().wait()
    await due.run(database, DUE_TABLES)


def doors(context: Context) -> Doors:
    """The routes of the payment processor."""
    return Doors(webhooks.routes(context.database, context.runner, context.limits))


PART = Part(
    operations=webhooks.OPERATIONS,
    doors=doors,
    loops=(run,),
    timed=(
        PeriodicJob("37 4 * * *", reconciliation.report),
        PeriodicJob("53 4 * * *", in_batches(webhooks.forget)),
    ),
)
