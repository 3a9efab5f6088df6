"""What payments register: the routes of the processor, and the background work with it."""

from collections.abc import Sequence

from holdfast.events.context import Context
from holdfast.events.payments import checkout, partner_webhooks, payout_accounts, reconciliation, refunds
from holdfast.events.payments.due import PaymentWork, payment_rows
from holdfast.events.resources import Database
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Endpoints, Part

PAYMENT_TABLES = (checkout.OPENING, checkout.FOLLOWING, refunds.DISPUTES, refunds.REFUNDS, payout_accounts.DUE_TABLE)


def rows(database: Database) -> Sequence[PaymentWork]:
    """Payments are opened and followed, refunds made, accounts and disputes polled, if there is a processor."""
    return payment_rows(database, PAYMENT_TABLES) if database.resources.processor else ()


def endpoints(context: Context) -> Endpoints:
    """The routes of the payment processor."""
    return Endpoints(partner_webhooks.routes(context.database, context.runner, context.limits))


PART = Part(
    operations=partner_webhooks.OPERATIONS,
    endpoints=endpoints,
    row_work=rows,
    timed_tasks=(
        TimedTask("report", Schedule.daily("04:37"), reconciliation.log_differences),
        TimedTask("forget", Schedule.daily("04:53"), in_batches(partner_webhooks.forget)),
    ),
)
