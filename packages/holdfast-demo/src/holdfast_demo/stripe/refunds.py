"""Refunds: money goes back to the card, and on request the same share of the transfer and of the fee goes back too."""

import stripe

from holdfast_demo.stripe import disputes
from holdfast_demo.stripe.books import CARDHOLDERS, PLATFORM
from holdfast_demo.stripe.currencies import require_divisible
from holdfast_demo.stripe.errors import StripeRefusal
from holdfast_demo.stripe.payments import CHARGE, FEE, INTENT, TRANSFER
from holdfast_demo.stripe.processor_state import ProcessorState, with_nulls
from holdfast_demo.stripe.store import StripeObject, new_id

KIND = "refund"
REVERSAL = "transfer_reversal"


def create(processor: ProcessorState, params: StripeObject) -> StripeObject:
    """Refund a payment or a part of it. Raises `StripeRefusal` if the amount exceeds the rest of the payment."""
    charge = _charge(processor, params)
    rest = charge["amount"] - charge["amount_refunded"]
    if rest == 0:
        message = f"Charge {charge['id']} has already been refunded."
        raise StripeRefusal(message, code="charge_already_refunded", param="charge")
    disputes.require_refundable(processor, charge)
    amount = params.get("amount", rest)
    if amount < 1:
        message = "This value must be greater than or equal to 1."
        raise StripeRefusal(message, code="parameter_invalid_integer", param="amount")
    if amount > rest:
        raise StripeRefusal(
            f"Refund amount ({amount}) is greater than unrefunded amount on charge ({rest} {charge['currency']})",
            param="amount",
        )
    require_divisible(amount, charge["currency"], "amount")
    for name, source in (("reverse_transfer", "transfer"), ("refund_application_fee", "application_fee")):
        if params.get(name) and not charge[source]:
            raise StripeRefusal(f"Charge {charge['id']} has no associated {source}.", param=name)
    now, id = processor.clock.now(), new_id("re")
    processor.books.move("refund", id, now, charge["currency"], amount, from_account=PLATFORM, to_account=CARDHOLDERS)
    gone = charge["amount_refunded"] + amount
    reversal = _reverse(processor, charge, id, amount) if params.get("reverse_transfer") else None
    if params.get("refund_application_fee"):
        _return_fee(processor, charge, amount)
    refund: StripeObject = {
        "id": id,
        "object": KIND,
        "amount": amount,
        "charge": charge["id"],
        "created": now,
        "currency": charge["currency"],
        "metadata": params.get("metadata") or {},
        "payment_intent": charge["payment_intent"],
        "reason": params.get("reason"),
        "status": "succeeded" if processor.refunds_settle else "pending",
        "transfer_reversal": reversal["id"] if reversal else None,
    }
    refund = processor.store.put(with_nulls(stripe.Refund, refund))
    charge = processor.store.put({**charge, "amount_refunded": gone, "refunded": gone == charge["amount"]})
    processor.store_event("refund.created", refund)
    processor.store_event("charge.refunded", charge)
    return refund


def settle(processor: ProcessorState, id: str, failure: str = "") -> StripeObject:
    """Settle a refund that is pending, or that the bank has sent back.

    failure    why it failed, such as `expired_or_canceled_card`; empty: it has succeeded
    """
    refund = processor.store.get(KIND, id)
    if refund["status"] == "failed" or (refund["status"] == "succeeded" and not failure):
        raise StripeRefusal(f"The refund {id} has the status {refund['status']}.")
    if failure:
        now = processor.clock.now()
        processor.books.move(
            "refund_failure",
            id,
            now,
            refund["currency"],
            refund["amount"],
            from_account=CARDHOLDERS,
            to_account=PLATFORM,
        )
        charge = processor.store.get(CHARGE, refund["charge"])
        amount_refunded = charge["amount_refunded"] - refund["amount"]
        processor.store.put({**charge, "amount_refunded": amount_refunded, "refunded": False})
        refund = {**refund, "status": "failed", "failure_reason": failure}
    else:
        refund = {**refund, "status": "succeeded"}
    processor.store.put(refund)
    processor.store_event("refund.updated", refund)
    if failure:
        processor.store_event("refund.failed", refund)
    return refund


def _charge(processor: ProcessorState, params: StripeObject) -> StripeObject:
    if ("charge" in params) == ("payment_intent" in params):
        raise StripeRefusal(
            "Exactly one of the parameters charge and payment_intent has to be given.", param="payment_intent"
        )
    if "charge" in params:
        return processor.store.get(CHARGE, params["charge"], "charge")
    intent = processor.store.get(INTENT, params["payment_intent"], "payment_intent")
    return processor.store.get(CHARGE, intent["latest_charge"])


def _share(thing: StripeObject, payment_amount: int, amount: int, before: int) -> tuple[int, int]:
    """The part of a transfer or fee that goes back with an amount, and the refunded amount that is then covered.

    The parts add up: the whole transfer or fee has gone back when the whole payment has.

    before   the amount of the transfer or fee that has gone back already
    """
    covered = thing.get("_covered", 0) + amount
    return (2 * thing["amount"] * covered + payment_amount) // (2 * payment_amount) - before, covered


def _reverse(processor: ProcessorState, charge: StripeObject, refund: str, amount: int) -> StripeObject:
    transfer = processor.store.get(TRANSFER, charge["transfer"])
    part, covered = _share(transfer, charge["amount"], amount, transfer["amount_reversed"])
    now, id = processor.clock.now(), new_id("trr")
    processor.books.move(
        REVERSAL, id, now, charge["currency"], part, from_account=transfer["destination"], to_account=PLATFORM
    )
    reversal: StripeObject = {
        "id": id,
        "object": REVERSAL,
        "amount": part,
        "created": now,
        "currency": charge["currency"],
        "metadata": {},
        "source_refund": refund,
        "transfer": transfer["id"],
    }
    reversal = processor.store.put(with_nulls(stripe.TransferReversal, reversal))
    back = transfer["amount_reversed"] + part
    listing = {**transfer["reversals"], "data": [reversal, *transfer["reversals"]["data"]]}
    changes = {
        "amount_reversed": back,
        "reversed": back == transfer["amount"],
        "reversals": listing,
        "_covered": covered,
    }
    transfer = processor.store.put({**transfer, **changes})
    processor.store_event("transfer.reversed", transfer)
    return reversal


def _return_fee(processor: ProcessorState, charge: StripeObject, amount: int) -> None:
    fee = processor.store.get(FEE, charge["application_fee"])
    part, covered = _share(fee, charge["amount"], amount, fee["amount_refunded"])
    if part == 0:
        processor.store.put({**fee, "_covered": covered})
        return
    now, id = processor.clock.now(), new_id("fr")
    processor.books.move(
        "application_fee_refund", id, now, charge["currency"], part, from_account=PLATFORM, to_account=fee["account"]
    )
    fee_refund: StripeObject = {
        "id": id,
        "object": "fee_refund",
        "amount": part,
        "created": now,
        "currency": charge["currency"],
        "fee": fee["id"],
        "metadata": {},
    }
    fee_refund = processor.store.put(with_nulls(stripe.ApplicationFeeRefund, fee_refund))
    back = fee["amount_refunded"] + part
    listing = {**fee["refunds"], "data": [fee_refund, *fee["refunds"]["data"]]}
    changes = {"amount_refunded": back, "refunded": back == fee["amount"], "refunds": listing, "_covered": covered}
    processor.store_event("application_fee.refunded", processor.store.put({**fee, **changes}))
