"""Disputes: the holder of a card has the bank take a payment back, and the platform answers with evidence.

The money goes at once, with a fee of the processor, and comes back if the dispute is won; the fee does not. It is the
platform that pays, as for every destination charge: the transfer to the connected account stays.
"""

from typing import Literal

import stripe

from holdfast.events.payments.demo.books import CARDHOLDERS, PLATFORM, PROCESSOR
from holdfast.events.payments.demo.currencies import digits
from holdfast.events.payments.demo.errors import Refusal, unmodelled
from holdfast.events.payments.demo.store import Thing, new_id
from holdfast.events.payments.demo.world import World, whole

KIND = "dispute"
CHARGE = "charge"

CARD = "4000000000000259"
"""The number of a card whose payments are disputed at once, as in Stripe's test mode."""

DAYS = 7
"""How long the platform has to answer."""

DECIDED = {"winning_evidence": "won", "losing_evidence": "lost"}
"""What the text of the evidence decides, as in Stripe's test mode."""


def open_one(world: World, charge_id: str, reason: str = "fraudulent") -> Thing:
    """Dispute a charge. Raises `Refusal` if it is disputed, or was given back."""
    charge = world.store.get(CHARGE, charge_id)
    if charge["disputed"] or charge["refunded"]:
        raise Refusal(f"Charge {charge_id} cannot be disputed.", param="charge")
    now, amount = world.clock.now(), charge["amount"] - charge["amount_refunded"]
    dispute: Thing = {
        "id": new_id("du"),
        "object": KIND,
        "amount": amount,
        "balance_transactions": [],
        "charge": charge_id,
        "created": now,
        "currency": charge["currency"],
        "enhanced_eligibility_types": [],
        "evidence": whole(stripe.Dispute.Evidence, {"enhanced_evidence": {}}),
        "evidence_details": {
            "due_by": now + DAYS * 86_400,
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
    dispute = world.store.put(whole(stripe.Dispute, dispute))
    world.store.put({**charge, "disputed": True})
    world.books.move(KIND, dispute["id"], now, dispute["currency"], amount, of=PLATFORM, to=CARDHOLDERS)
    fee = 20 * 10 ** digits(dispute["currency"])
    world.books.move("dispute_fee", dispute["id"], now, dispute["currency"], fee, of=PLATFORM, to=PROCESSOR)
    world.tell("charge.dispute.created", dispute)
    world.tell("charge.dispute.funds_withdrawn", dispute)
    return dispute


def answer(world: World, id: str, params: Thing) -> Thing:
    """Give evidence. Its text decides at once; any other text is kept, and the dispute goes on."""
    dispute = _undecided(world, id)
    evidence = params.get("evidence", {})
    for name in evidence.keys() - {"uncategorized_text"}:
        raise unmodelled(f"evidence[{name}]")
    if not evidence:
        return dispute
    submits = params.get("submit", True)
    details = {**dispute["evidence_details"], "has_evidence": True}
    if submits:
        details |= {"submission_count": details["submission_count"] + 1, "submission_method": "manual"}
    dispute = {**dispute, "evidence": {**dispute["evidence"], **evidence}, "evidence_details": details}
    if submits:
        dispute["status"] = "under_review"
    world.tell("charge.dispute.updated", world.store.put(dispute))
    outcome = DECIDED.get(evidence["uncategorized_text"]) if submits else None
    if outcome == "won":
        return decide(world, id, "won")
    return decide(world, id, "lost") if outcome else dispute


def decide(world: World, id: str, outcome: Literal["won", "lost"]) -> Thing:
    """End a dispute, as the bank does. Raises `Refusal` if it has ended."""
    dispute = world.store.put({**_undecided(world, id), "status": outcome})
    if outcome == "won":
        now, currency, amount = world.clock.now(), dispute["currency"], dispute["amount"]
        world.books.move("dispute_reversal", id, now, currency, amount, of=CARDHOLDERS, to=PLATFORM)
        world.tell("charge.dispute.funds_reinstated", dispute)
    world.tell("charge.dispute.closed", dispute)
    return dispute


def require_refundable(world: World, charge: Thing) -> None:
    """Raises `Refusal` while a charge is disputed, and for ever if that was lost."""
    found = world.store.page(KIND, {"charge": charge["id"]}, {}, most=1).things
    if any(each["status"] != "won" for each in found):
        message = f"Charge {charge['id']} has been charged back; cannot issue a refund."
        raise Refusal(message, code="charge_disputed", param="charge")


def _undecided(world: World, id: str) -> Thing:
    dispute = world.store.get(KIND, id)
    if dispute["status"] in DECIDED.values():
        raise Refusal("This dispute is already closed", param="dispute")
    return dispute
