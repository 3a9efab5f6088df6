"""Reconciliation: compares our payments of some days with the books of the processor.

The books are not stored. Payments that differ are marked as due, so that a person who paid gets a seat or a refund;
differences that this cannot repair are reported to operators.
"""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Literal, LiteralString

import msgspec
import structlog
from msgspec import Struct
from prometheus_client import Counter

from holdfast.events.payments import refunds
from holdfast.events.payments.partner_webhooks import mark_due
from holdfast.events.processor.processor import ProcessorPayment
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.events.seats.held_seats import PaymentStatus
from holdfast.kit.environment.metrics import start_at_zero

DEFAULT_DAYS = 2

COMPARE_BATCH_SIZE = 100

DIFFERENCES = Counter("holdfast_payment_differences", "Payments in which the processor's books differ.", ["kind"])

log = structlog.get_logger()

Kind = Literal["unknown", "not_noted", "other_amount", "other_refunds", "dispute_not_noted", "not_taken"]

MEANINGS: dict[Kind, str] = {
    "unknown": "The processor has a payment that no registration of this service asked for. Look at it there.",
    "not_noted": "It was paid, and this service did not know. It is asked about now.",
    "other_amount": "The processor has another amount than this service. Look at it there.",
    "other_refunds": "The processor has given back another sum than this service. Look at it there.",
    "dispute_not_noted": "Its holder disputes it, and this service did not know. It is asked about now.",
    "not_taken": "This service has it as paid, and the processor has not. Look at it there.",
}
"""The meaning of each difference, and the action that was taken or is needed."""

for _kind in MEANINGS:
    start_at_zero(DIFFERENCES, _kind)


class Difference(Struct):
    """One payment in which the books differ. Amounts are in minor units; None: there is no payment."""

    kind: Kind
    intent_id: str
    payment_id: int | None
    ours: int | None
    theirs: int | None
    currency: str

    @property
    def meaning(self) -> str:
        return MEANINGS[self.kind]


class ReconciliationReport(Struct):
    """The result of a reconciliation. `compared`: the number of payments in the processor's books."""

    since: dt.datetime
    compared: int
    differences: list[Difference]


class StoredPayment(Struct):
    """A payment in our database. `refunded`: the sum of the refunds that were made."""

    id: int
    session_id: str
    intent_id: str | None
    status: PaymentStatus
    amount: int
    currency: str
    refunded: int
    is_disputed: bool
    paid_at: dt.datetime | None


async def reconcile(steps: Steps, days: float = DEFAULT_DAYS) -> ReconciliationReport:
    """Compare the payments of this many days, and mark payments and disputes unknown to us as due."""
    processor = steps.resources.require_processor()
    since = await steps.read(lambda reader: reader.value("select now() - %(days)s * interval '1 day'", {"days": days}))
    all_differences: list[Difference] = []
    checked_ids: set[str] = set()
    batch: list[ProcessorPayment] = []
    compared = 0

    async def compare() -> None:
        nonlocal compared
        differences = await _compare(steps, batch)
        compared += len(batch)
        checked_ids.update(payment.intent_id for payment in batch)
        all_differences.extend(differences)
        batch.clear()

    async for payment in processor.payments_since(since):
        batch.append(payment)
        if len(batch) == COMPARE_BATCH_SIZE:
            await compare()
    if batch:
        await compare()
    # Sessions are listed by the time they were opened. Payments made before the last minutes must be among them.
    stored_payments = await steps.read(partial(_paid_since, since=since))
    all_differences += [
        Difference("not_taken", payment.intent_id or "", payment.id, payment.amount, None, payment.currency)
        for payment in stored_payments
        if payment.intent_id not in checked_ids
    ]
    return ReconciliationReport(since, compared, all_differences)


async def log_differences(steps: Steps) -> int:
    """Log and count the differences of the daily reconciliation. Returns the number of payments that differ."""
    if steps.resources.processor is None:
        return 0
    report = await reconcile(steps)
    for difference in report.differences:
        DIFFERENCES.labels(difference.kind).inc()
        log.error(
            "the payment processor's books differ", **msgspec.structs.asdict(difference), meaning=difference.meaning
        )
    return len(report.differences)


async def _compare(steps: Steps, processor_payments: Sequence[ProcessorPayment]) -> list[Difference]:
    """The differences between payments in the processor's books and ours.

    Payments that we have not noted as paid become due, and disputes that we do not know are recorded.
    """
    stored_payments = {
        payment.session_id: payment
        for payment in await steps.read(partial(_find, ids=[payment.session_id for payment in processor_payments]))
    }
    differences: list[Difference] = []
    late: list[str] = []
    disputed: list[str] = []
    for payment in processor_payments:
        stored_payment = stored_payments.get(payment.session_id)
        currency = payment.currency.upper()
        if stored_payment is None:
            differences.append(Difference("unknown", payment.intent_id, None, None, payment.amount, currency))
        elif stored_payment.status != "paid":
            late.append(payment.session_id)
            differences.append(
                Difference("not_noted", payment.intent_id, stored_payment.id, None, payment.amount, currency)
            )
        elif (stored_payment.amount, stored_payment.currency) != (payment.amount, currency):
            differences.append(
                Difference(
                    "other_amount",
                    payment.intent_id,
                    stored_payment.id,
                    stored_payment.amount,
                    payment.amount,
                    currency,
                )
            )
        elif stored_payment.refunded != payment.refunded:
            differences.append(
                Difference(
                    "other_refunds",
                    payment.intent_id,
                    stored_payment.id,
                    stored_payment.refunded,
                    payment.refunded,
                    currency,
                )
            )
        elif payment.disputed and not stored_payment.is_disputed:
            disputed.append(payment.intent_id)
            differences.append(
                Difference(
                    "dispute_not_noted",
                    payment.intent_id,
                    stored_payment.id,
                    stored_payment.amount,
                    payment.amount,
                    currency,
                )
            )
    for intent_id in disputed:
        await _record_disputes(steps, intent_id)
    if late:
        await steps.transact(lambda tx: mark_due(tx, late))
    return differences


async def _record_disputes(steps: Steps, intent_id: str) -> None:
    """Store the disputes about a payment for which no message came."""

    async def record(tx: Tx) -> None:
        for dispute in processor_disputes:
            await refunds.record_dispute(tx, dispute.id, intent_id)

    processor_disputes = await steps.resources.require_processor().disputes_of(intent_id)
    await steps.transact(record)


SELECT_PAYMENTS: LiteralString = """
    select payments.id, session_id, intent_id, payments.state::text as status, payments.amount, currency,
           coalesce((select sum(amount) from refunds
                      where payment_id = payments.id and state = 'made'), 0)::bigint as refunded,
           exists (select from disputes where disputes.intent_id = payments.intent_id) as is_disputed, paid_at
      from payments
"""


async def _find(reader: Reader, ids: Sequence[str]) -> list[StoredPayment]:
    return await reader.rows(StoredPayment, f"{SELECT_PAYMENTS} where session_id = any(%(ids)s)", {"ids": [*ids]})


async def _paid_since(reader: Reader, since: dt.datetime) -> list[StoredPayment]:
    return await reader.rows(
        StoredPayment,
        f"""
        {SELECT_PAYMENTS} where payments.state = 'paid' and payments.inserted_at > %(since)s
                 and paid_at < now() - interval '5 minutes'
        """,
        {"since": since},
    )
