"""Checkout Sessions: pages on which one payment can be made, until they are paid, expired or ended."""

import re

import stripe

from holdfast_demo.stripe import accounts
from holdfast_demo.stripe.currencies import require_chargeable, require_divisible, require_supported
from holdfast_demo.stripe.errors import StripeRefusal, unmodelled_parameter
from holdfast_demo.stripe.processor_state import ProcessorState, list_object, with_nulls
from holdfast_demo.stripe.store import StripeObject, new_id

KIND = "checkout.session"
MIN_SESSION_SECONDS = 30 * 60
MAX_SESSION_SECONDS = 24 * 3600

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")


def create(processor: ProcessorState, params: StripeObject) -> StripeObject:
    """Create a session for one payment. Raises `StripeRefusal`."""
    _require_valid(params)
    now = processor.clock.now()
    expires_at = _end_time(params, now)
    items, currency = _items(params)
    total = sum(item["amount_total"] for item in items)
    require_chargeable(total, currency, "line_items")
    plan = _payment_plan(processor, params.get("payment_intent_data", {}), total, currency)
    id = new_id("cs_test")
    session: StripeObject = {
        "id": id,
        "object": KIND,
        "amount_subtotal": total,
        "amount_total": total,
        "automatic_tax": {"enabled": False, "liability": None, "provider": None, "status": None},
        "cancel_url": params.get("cancel_url"),
        "client_reference_id": params.get("client_reference_id"),
        "created": now,
        "currency": currency,
        "custom_fields": [],
        "custom_text": dict.fromkeys(("after_submit", "shipping_address", "submit", "terms_of_service_acceptance")),
        "customer_creation": "if_required",
        "customer_email": params.get("customer_email"),
        "expires_at": expires_at,
        "livemode": False,
        "locale": params.get("locale"),
        "metadata": params.get("metadata", {}),
        "mode": "payment",
        "payment_method_collection": "if_required",
        "payment_method_types": ["card"],
        "payment_status": "unpaid",
        "shipping_options": [],
        "status": "open",
        "submit_type": params.get("submit_type"),
        "success_url": params["success_url"],
        "total_details": {"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0},
        "ui_mode": "hosted_page",
        "url": f"{processor.address}/pay/{id}",
        "_items": items,
        "_plan": plan,
    }
    processor.store.put(with_nulls(stripe.checkout.Session, session))
    processor.notify_deadline()
    return find(processor, id)


def _require_valid(params: StripeObject) -> None:
    """Raise `StripeRefusal` unless the parameters are valid, apart from the end time, the items and the payment."""
    if params.get("mode", "payment") != "payment":
        raise unmodelled_parameter("mode")
    if "mode" not in params:
        raise StripeRefusal("You must provide `mode`.", code="parameter_missing", param="mode")
    if params.get("ui_mode", "hosted_page") != "hosted_page":
        raise unmodelled_parameter("ui_mode")
    if "success_url" not in params:
        raise StripeRefusal("Missing required param: success_url.", code="parameter_missing", param="success_url")
    for name in ("success_url", "cancel_url"):
        if name in params:
            accounts.require_url(params[name], name)
    if "customer_email" in params and not _EMAIL.fullmatch(params["customer_email"]):
        message = f"Invalid email address: {params['customer_email']}"
        raise StripeRefusal(message, code="email_invalid", param="customer_email")
    if len(params.get("client_reference_id", "")) > 200:
        raise StripeRefusal("client_reference_id has more than 200 characters.", param="client_reference_id")
    for name in ("payment_method_types", "allowed_payment_method_types"):
        if "card" not in params.get(name, ["card"]):
            raise unmodelled_parameter(name)


def _end_time(params: StripeObject, now: int) -> int:
    """When a session expires. Raises `StripeRefusal` if that is too soon or too late."""
    expires_at = params.get("expires_at", now + MAX_SESSION_SECONDS)
    if expires_at < now + MIN_SESSION_SECONDS:
        message = "The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation."
        raise StripeRefusal(message, param="expires_at")
    if expires_at > now + MAX_SESSION_SECONDS:
        message = "The `expires_at` timestamp must be less than 24 hours from Checkout Session creation."
        raise StripeRefusal(message, param="expires_at")
    return expires_at


def _items(params: StripeObject) -> tuple[list[StripeObject], str]:
    """The line items of a payment, and its currency."""
    lines: list[StripeObject] = params.get("line_items", [])
    if not lines:
        raise StripeRefusal("You must provide `line_items`.", code="parameter_missing", param="line_items")
    items: list[StripeObject] = []
    for index, line in enumerate(lines):
        prefix = f"line_items[{index}]"
        if "price_data" not in line:
            raise unmodelled_parameter(f"{prefix}[price]")
        price = line["price_data"]
        if "product_data" not in price or "unit_amount" not in price:
            missing_member = "product_data" if "product_data" not in price else "unit_amount"
            param = f"{prefix}[price_data][{missing_member}]"
            raise StripeRefusal(f"Missing required param: {param}.", code="parameter_missing", param=param)
        amount: int = price["unit_amount"]
        quantity: int | None = line.get("quantity")
        if quantity is None:
            raise StripeRefusal(f"Quantity is required. Add `quantity` to `{prefix}`", param=prefix)
        for value, param in ((quantity, f"{prefix}[quantity]"), (amount, f"{prefix}[price_data][unit_amount]")):
            if value < 0:
                raise StripeRefusal(
                    f"Invalid non-negative integer: {value}", code="parameter_invalid_integer", param=param
                )
        currency = require_supported(price["currency"], f"{prefix}[price_data][currency]")
        if items and currency != items[0]["currency"]:
            raise StripeRefusal("All line items must have the same currency.", param=f"{prefix}[price_data][currency]")
        line_item: StripeObject = {
            "id": new_id("li"),
            "object": "item",
            "amount_discount": 0,
            "amount_subtotal": amount * quantity,
            "amount_tax": 0,
            "amount_total": amount * quantity,
            "currency": currency,
            "description": price["product_data"]["name"],
            "quantity": quantity,
        }
        items.append(with_nulls(stripe.LineItem, line_item))
    return items, items[0]["currency"]


def _payment_plan(processor: ProcessorState, data: StripeObject, total: int, currency: str) -> StripeObject:
    """Where the money goes once the session is paid: destination, fee and metadata."""
    prefix = "payment_intent_data"
    for name in data.keys() - {"application_fee_amount", "transfer_data", "metadata", "on_behalf_of", "description"}:
        raise unmodelled_parameter(f"{prefix}[{name}]")
    fee, destination = data.get("application_fee_amount"), data.get("transfer_data", {}).get("destination")
    if "amount" in data.get("transfer_data", {}):
        raise unmodelled_parameter(f"{prefix}[transfer_data][amount]")
    if destination:
        accounts.require_destination(processor, destination, f"{prefix}[transfer_data][destination]")
    if fee is not None:
        param = f"{prefix}[application_fee_amount]"
        if not destination:
            raise StripeRefusal(
                "Can only apply an application_fee_amount when the PaymentIntent is attempting a direct payment (using "
                "an OAuth key or Stripe-Account header) or destination payment (using `transfer_data[destination]`).",
                param=param,
            )
        if not 0 <= fee <= total:
            raise StripeRefusal(f"The application fee has to be from 0 to the amount, {total}.", param=param)
        require_divisible(fee, currency, param)
    charged_account_id = data.get("on_behalf_of")
    if (
        charged_account_id
        and "card_payments" not in accounts.find(processor, charged_account_id)[accounts.CAPABILITIES]
    ):
        message = "The account on whose behalf is charged needs the card_payments capability."
        raise StripeRefusal(message, param=f"{prefix}[on_behalf_of]")
    return {
        "fee": fee,
        "destination": destination,
        "metadata": data.get("metadata", {}),
        "on_behalf_of": charged_account_id,
        "description": data.get("description"),
    }


def find(processor: ProcessorState, id: str) -> StripeObject:
    """The session with an id. Raises `StripeRefusal`."""
    return processor.store.get(KIND, id)


def line_items(processor: ProcessorState, id: str) -> StripeObject:
    """The line items of a session."""
    return list_object(find(processor, id)["_items"], f"/v1/checkout/sessions/{id}/line_items")


def expire(processor: ProcessorState, id: str) -> StripeObject:
    """Expire a session before its end time. Raises `StripeRefusal` unless it is open."""
    session = find(processor, id)
    if session["status"] != "open":
        raise StripeRefusal(
            'Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of '
            f"`{session['status']}`."
        )
    return _end(processor, session)


def expire_due(processor: ProcessorState) -> None:
    """Expire the sessions whose end time has passed, with an event for each."""
    rows = processor.store.db.execute(
        "select id from things indexed by sessions_by_end"
        " where kind = 'checkout.session' and json_extract(body, '$.status') = 'open'"
        " and json_extract(body, '$.expires_at') <= ?",
        (processor.clock.now(),),
    ).fetchall()
    for (id,) in rows:
        _end(processor, find(processor, id))


def next_end(processor: ProcessorState) -> int | None:
    """When the next session expires; None if none is open."""
    (end,) = processor.store.db.execute(
        "select min(json_extract(body, '$.expires_at')) from things indexed by sessions_by_end"
        " where kind = 'checkout.session' and json_extract(body, '$.status') = 'open'"
    ).fetchone()
    return end


def _end(processor: ProcessorState, session: StripeObject) -> StripeObject:
    session = processor.store.put({**session, "status": "expired", "url": None})
    processor.store_event("checkout.session.expired", session)
    return session
