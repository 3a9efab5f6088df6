"""Disputes: the bank of a cardholder takes a payment back, and the platform answers with evidence.

The money and a fee of the processor are withdrawn at once. The money comes back if the dispute is won, the fee does
not. The platform pays, as for every destination charge: the transfer to the connected account stays.
"""

from typing import Literal

import stripe

from holdfast_demo.stripe.books import CARDHOLDERS, PLATFORM, PROCESSOR
from holdfast_demo.stripe.currencies import minor_unit_digits
from holdfast_demo.stripe.errors import StripeRefusal, unmodelled_parameter
from holdfast_demo.stripe.processor_state import ProcessorState, with_nulls
from holdfast_demo.stripe.store import StripeObject, new_id

DecidedStatus = Literal["won", "lost"]

KIND = "dispute"
CHARGE = "charge"

CARD = "4000000000000259"
"""A card number whose payments are disputed at once, as in Stripe's test mode."""

ANSWER_DAYS = 7
"""The days that the platform has to answer."""

DECIDED_STATUSES = {"winning_evidence": "won", "losing_evidence": "lost"}
"""The decision for each text of the evidence, as in Stripe's test mode."""


def open_one(processor: ProcessorState, charge_id: str, reason: str = "fraudulent") -> StripeObject:
    """Dispute a charge. Raises `StripeRefusal` if it is already disputed or refunded."""
    charge = processor.store.get(CHARGE, charge_id)
    if charge["disputed"] or charge["refunded"]:
        raise StripeRefusal(f"Charge {charge_id} cannot be disputed.", param="charge")
    now, amount = processor.clock.now(), charge["amount"] - charge["amount_refunded"]
    dispute: StripeObject = {
        "id": new_id("du"),
        "object": KIND,
        "amount": amount,
        "balance_transactions": [],
        "charge": charge_id,
        "created": now,
        "currency": charge["currency"],
        "enhanced_eligibility_types": [],
        "evidence": with_nulls(stripe.Dispute.Evidence, {"enhanced_evidence": {}}),
        "evidence_details": {
            "due_by": now + ANSWER_DAYS * 86_400,
            "enhanced_eligibility": {},
            "has_evidence": False,
            "past_due": False,
            "submission_count": 0,
            "submission_method": "not_submitted",
        },
        "is_charge_refundable": False,
        "livemode": False,
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "reason": reason,
        "status": "needs_response",
    }
    dispute = processor.store.put(with_nulls(stripe.Dispute, dispute))
    processor.store.put({**charge, "disputed": True})
    processor.books.move(
        KIND, dispute["id"], now, dispute["currency"], amount, from_account=PLATFORM, to_account=CARDHOLDERS
    )
    fee = 20 * 10 ** minor_unit_digits(dispute["currency"])
    processor.books.move(
        "dispute_fee", dispute["id"], now, dispute["currency"], fee, from_account=PLATFORM, to_account=PROCESSOR
    )
    processor.store_event("charge.dispute.created", dispute)
    processor.store_event("charge.dispute.funds_withdrawn", dispute)
    return dispute


def answer(processor: ProcessorState, id: str, params: StripeObject) -> StripeObject:
    """Store evidence. A text in `DECIDED_STATUSES` decides the dispute at once; with any other text it stays open."""
    dispute = _undecided(processor, id)
    evidence = params.get("evidence", {})
    for name in evidence.keys() - {"uncategorized_text"}:
        raise unmodelled_parameter(f"evidence[{name}]")
    if not evidence:
        return dispute
    submits = params.get("submit", True)
    details = {**dispute["evidence_details"], "has_evidence": True}
    if submits:
        details |= {"submission_count": details["submission_count"] + 1, "submission_method": "manual"}
    dispute = {**dispute, "evidence": {**dispute["evidence"], **evidence}, "evidence_details": details}
    if submits:
        dispute["status"] = "under_review"
    processor.store_event("charge.dispute.updated", processor.store.put(dispute))
    status = DECIDED_STATUSES.get(evidence["uncategorized_text"]) if submits else None
    if status == "won":
        return decide(processor, id, "won")
    return decide(processor, id, "lost") if status else dispute


def decide(processor: ProcessorState, id: str, status: DecidedStatus) -> StripeObject:
    """End a dispute, as the bank does. Raises `StripeRefusal` if it has ended."""
    dispute = processor.store.put({**_undecided(processor, id), "status": status})
    if status == "won":
        now, currency, amount = processor.clock.now(), dispute["currency"], dispute["amount"]
        processor.books.move(
            "dispute_reversal", id, now, currency, amount, from_account=CARDHOLDERS, to_account=PLATFORM
        )
        processor.store_event("charge.dispute.funds_reinstated", dispute)
    processor.store_event("charge.dispute.closed", dispute)
    return dispute


def require_refundable(processor: ProcessorState, charge: StripeObject) -> None:
    """Raises `StripeRefusal` while a charge is disputed, and after a lost dispute."""
    disputes = processor.store.page(KIND, {"charge": charge["id"]}, {}, max_count=1).things
    if any(dispute["status"] != "won" for dispute in disputes):
        message = f"Charge {charge['id']} has been charged back; cannot issue a refund."
        raise StripeRefusal(message, code="charge_disputed", param="charge")


def _undecided(processor: ProcessorState, id: str) -> StripeObject:
    dispute = processor.store.get(KIND, id)
    if dispute["status"] in DECIDED_STATUSES.values():
        raise StripeRefusal("This dispute is already closed", param="dispute")
    return dispute
