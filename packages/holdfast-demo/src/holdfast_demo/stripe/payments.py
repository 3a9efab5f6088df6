"""Payment of a session: intent, charge, transfer and fee, and the entries in the books."""

import stripe

from holdfast.kit.contract.messages import translatable
from holdfast_demo.stripe import disputes, sessions
from holdfast_demo.stripe.books import CARDHOLDERS, PLATFORM, PROCESSOR
from holdfast_demo.stripe.currencies import minor_unit_digits
from holdfast_demo.stripe.errors import StripeRefusal
from holdfast_demo.stripe.processor_state import PLATFORM_ID, ProcessorState, list_object, with_nulls
from holdfast_demo.stripe.store import StripeObject, new_id

INTENT = "payment_intent"
CHARGE = disputes.CHARGE
TRANSFER = "transfer"
FEE = "application_fee"

DECLINED = {
    "4000000000000002": translatable("Your card was declined."),
    "4000000000009995": translatable("Your card has insufficient funds."),
}
"""Card numbers that are declined, as in Stripe's test mode, each with the message that payers see."""

_CARD: StripeObject = {"brand": "visa", "country": "DE", "exp_month": 12, "exp_year": 2035, "funding": "credit"}


def pay(
    processor: ProcessorState, session_id: str, card: str = "4242424242424242", name: str = "", email: str = ""
) -> StripeObject:
    """Pay a session, and return it completed. Raises `StripeRefusal` if it is not open or the card is declined."""
    session = sessions.find(processor, session_id)
    if session["status"] != "open":
        raise StripeRefusal(f"This Checkout Session has a status of `{session['status']}`.")
    if card in DECLINED:
        raise StripeRefusal(DECLINED[card], status=402, type="card_error", code="card_declined")
    charge = _charge(processor, session, card, name, email or session["customer_email"])
    details: StripeObject = {"address": None, "email": email or session["customer_email"], "name": name or None}
    session = processor.store.put(
        {
            **session,
            "customer_details": {**details, "phone": None, "tax_exempt": "none", "tax_ids": []},
            "payment_intent": charge["payment_intent"],
            "payment_status": "paid",
            "status": "complete",
            "url": None,
        }
    )
    processor.store_event("checkout.session.completed", session)
    if card == disputes.CARD:
        disputes.open_one(processor, charge["id"])
    return session


def processing_fee(amount: int, currency: str) -> int:
    """The fee of the processor, which the platform pays: 1.5 % and a quarter of a unit of the currency."""
    fixed = 25 * 10 ** minor_unit_digits(currency) // 100
    return min(amount, amount * 15 // 1000 + fixed)


def _charge(processor: ProcessorState, session: StripeObject, card: str, name: str, email: str | None) -> StripeObject:
    now, currency, amount = processor.clock.now(), session["currency"], session["amount_total"]
    plan: StripeObject = session["_plan"]
    shared: StripeObject = {
        "created": now,
        "amount": amount,
        "currency": currency,
        "description": plan["description"],
        "livemode": False,
        "on_behalf_of": plan["on_behalf_of"],
        "metadata": plan["metadata"],
        "application_fee_amount": plan["fee"],
    }
    if plan["destination"]:
        shared["transfer_data"] = {"amount": None, "destination": plan["destination"]}
    intent_id, charge_id = new_id("pi"), new_id("ch")
    intent: StripeObject = {
        **shared,
        "id": intent_id,
        "object": INTENT,
        "amount_capturable": 0,
        "amount_received": amount,
        "capture_method": "automatic_async",
        "confirmation_method": "automatic",
        "latest_charge": charge_id,
        "payment_method_types": ["card"],
        "status": "succeeded",
    }
    charge: StripeObject = {
        **shared,
        "id": charge_id,
        "object": CHARGE,
        "amount_captured": amount,
        "amount_refunded": 0,
        "billing_details": {"address": None, "email": email, "name": name or None, "phone": None, "tax_id": None},
        "captured": True,
        "disputed": False,
        "paid": True,
        "payment_intent": intent_id,
        "payment_method_details": {"card": {**_CARD, "last4": card[-4:]}, "type": "card"},
        "receipt_email": email,
        "refunded": False,
        "status": "succeeded",
    }
    books = processor.books
    books.move("charge", charge_id, now, currency, amount, from_account=CARDHOLDERS, to_account=PLATFORM)
    books.move(
        "processing_fee",
        charge_id,
        now,
        currency,
        processing_fee(amount, currency),
        from_account=PLATFORM,
        to_account=PROCESSOR,
    )
    transfer = fee = None
    if plan["destination"]:
        transfer = _transfer(processor, charge, plan["destination"])
        charge["transfer"] = transfer["id"]
        if plan["fee"]:
            fee = _fee(processor, charge, plan["destination"], plan["fee"])
            charge["application_fee"] = fee["id"]
    processor.store.put(with_nulls(stripe.PaymentIntent, intent))
    charge = processor.store.put(with_nulls(stripe.Charge, charge))
    processor.store_event("payment_intent.succeeded", intent)
    processor.store_event("charge.succeeded", charge)
    if transfer:
        processor.store_event("transfer.created", transfer)
    if fee:
        processor.store_event("application_fee.created", fee)
    return charge


def _transfer(processor: ProcessorState, charge: StripeObject, destination: str) -> StripeObject:
    """Transfer the whole amount to the connected account; `_fee` moves the fee back."""
    amount, currency, now = charge["amount"], charge["currency"], charge["created"]
    id = new_id("tr")
    processor.books.move("transfer", id, now, currency, amount, from_account=PLATFORM, to_account=destination)
    transfer: StripeObject = {
        "id": id,
        "object": TRANSFER,
        "amount": amount,
        "amount_reversed": 0,
        "created": now,
        "currency": currency,
        "destination": destination,
        "livemode": False,
        "metadata": {},
        "reversals": list_object([], f"/v1/transfers/{id}/reversals"),
        "reversed": False,
        "source_transaction": charge["id"],
        "source_type": "card",
    }
    return processor.store.put(with_nulls(stripe.Transfer, transfer))


def _fee(processor: ProcessorState, charge: StripeObject, account: str, amount: int) -> StripeObject:
    id = new_id("fee")
    processor.books.move(
        "application_fee", id, charge["created"], charge["currency"], amount, from_account=account, to_account=PLATFORM
    )
    fee: StripeObject = {
        "id": id,
        "object": FEE,
        "account": account,
        "amount": amount,
        "amount_refunded": 0,
        "application": f"ca_{PLATFORM_ID}",
        "charge": charge["id"],
        "created": charge["created"],
        "currency": charge["currency"],
        "livemode": False,
        "originating_transaction": charge["id"],
        "refunded": False,
        "refunds": list_object([], f"/v1/application_fees/{id}/refunds"),
    }
    return processor.store.put(with_nulls(stripe.ApplicationFee, fee))


def balance(processor: ProcessorState, account: str) -> StripeObject:
    """The balance of the platform or a connected account."""
    amounts = processor.books.balance(account or PLATFORM)
    available: list[StripeObject] = [
        {"amount": amount, "currency": currency, "source_types": {"card": amount}}
        for currency, amount in amounts.items()
    ] or [{"amount": 0, "currency": "eur", "source_types": {"card": 0}}]
    pending = [{**entry, "amount": 0, "source_types": {"card": 0}} for entry in available]
    return with_nulls(
        stripe.Balance, {"object": "balance", "available": available, "livemode": False, "pending": pending}
    )
