"""Checkout Sessions: pages on which one payment can be made, until they are paid, expired or ended."""

import re

import stripe

from holdfast.events.payments.demo import accounts
from holdfast.events.payments.demo.currencies import require_chargeable, require_divisible, require_supported
from holdfast.events.payments.demo.errors import Refusal, unmodelled
from holdfast.events.payments.demo.store import Thing, new_id
from holdfast.events.payments.demo.world import World, listed, whole

KIND = "checkout.session"
SHORTEST = 30 * 60
LONGEST = 24 * 3600

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")


def create(world: World, params: Thing) -> Thing:
    """A new session for one payment. Raises `Refusal`."""
    if params.get("mode", "payment") != "payment":
        raise unmodelled("mode")
    if "mode" not in params:
        raise Refusal("You must provide `mode`.", code="parameter_missing", param="mode")
    if params.get("ui_mode", "hosted_page") != "hosted_page":
        raise unmodelled("ui_mode")
    if "success_url" not in params:
        raise Refusal("Missing required param: success_url.", code="parameter_missing", param="success_url")
    for name in ("success_url", "cancel_url"):
        if name in params:
            accounts.require_url(params[name], name)
    if "customer_email" in params and not _EMAIL.fullmatch(params["customer_email"]):
        message = f"Invalid email address: {params['customer_email']}"
        raise Refusal(message, code="email_invalid", param="customer_email")
    if len(params.get("client_reference_id", "")) > 200:
        raise Refusal("client_reference_id has more than 200 characters.", param="client_reference_id")
    for name in ("payment_method_types", "allowed_payment_method_types"):
        if "card" not in params.get(name, ["card"]):
            raise unmodelled(name)
    now = world.clock.now()
    ends = params.get("expires_at", now + LONGEST)
    if ends < now + SHORTEST:
        message = "The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation."
        raise Refusal(message, param="expires_at")
    if ends > now + LONGEST:
        message = "The `expires_at` timestamp must be less than 24 hours from Checkout Session creation."
        raise Refusal(message, param="expires_at")
    items, currency = _items(params)
    total = sum(each["amount_total"] for each in items)
    require_chargeable(total, currency, "line_items")
    plan = _plan(world, params.get("payment_intent_data", {}), total, currency)
    id = new_id("cs_test")
    session: Thing = {
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
        "expires_at": ends,
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
        "url": f"{world.address}/pay/{id}",
        "_items": items,
        "_plan": plan,
    }
    world.store.put(whole(stripe.checkout.Session, session))
    world.deadline()
    return find(world, id)


def _items(params: Thing) -> tuple[list[Thing], str]:
    """The lines of a payment, and its currency."""
    given: list[Thing] = params.get("line_items", [])
    if not given:
        raise Refusal("You must provide `line_items`.", code="parameter_missing", param="line_items")
    items: list[Thing] = []
    for index, line in enumerate(given):
        at = f"line_items[{index}]"
        if "price_data" not in line:
            raise unmodelled(f"{at}[price]")
        price = line["price_data"]
        if "product_data" not in price or "unit_amount" not in price:
            missing = "product_data" if "product_data" not in price else "unit_amount"
            param = f"{at}[price_data][{missing}]"
            raise Refusal(f"Missing required param: {param}.", code="parameter_missing", param=param)
        amount: int = price["unit_amount"]
        quantity: int | None = line.get("quantity")
        if quantity is None:
            raise Refusal(f"Quantity is required. Add `quantity` to `{at}`", param=at)
        for value, param in ((quantity, f"{at}[quantity]"), (amount, f"{at}[price_data][unit_amount]")):
            if value < 0:
                raise Refusal(f"Invalid non-negative integer: {value}", code="parameter_invalid_integer", param=param)
        currency = require_supported(price["currency"], f"{at}[price_data][currency]")
        if items and currency != items[0]["currency"]:
            raise Refusal("All line items must have the same currency.", param=f"{at}[price_data][currency]")
        line_item: Thing = {
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
        items.append(whole(stripe.LineItem, line_item))
    return items, items[0]["currency"]


def _plan(world: World, data: Thing, total: int, currency: str) -> Thing:
    """What becomes of the money, once it is paid."""
    at = "payment_intent_data"
    for name in data.keys() - {"application_fee_amount", "transfer_data", "metadata", "on_behalf_of", "description"}:
        raise unmodelled(f"{at}[{name}]")
    fee, destination = data.get("application_fee_amount"), data.get("transfer_data", {}).get("destination")
    if "amount" in data.get("transfer_data", {}):
        raise unmodelled(f"{at}[transfer_data][amount]")
    if destination:
        accounts.require_destination(world, destination, f"{at}[transfer_data][destination]")
    if fee is not None:
        param = f"{at}[application_fee_amount]"
        if not destination:
            raise Refusal(
                "Can only apply an application_fee_amount when the PaymentIntent is attempting a direct payment (using "
                "an OAuth key or Stripe-Account header) or destination payment (using `transfer_data[destination]`).",
                param=param,
            )
        if not 0 <= fee <= total:
            raise Refusal(f"The application fee has to be from 0 to the amount, {total}.", param=param)
        require_divisible(fee, currency, param)
    merchant = data.get("on_behalf_of")
    if merchant and "card_payments" not in accounts.find(world, merchant)["_wanted"]:
        message = "The account on whose behalf is charged needs the card_payments capability."
        raise Refusal(message, param=f"{at}[on_behalf_of]")
    return {
        "fee": fee,
        "destination": destination,
        "metadata": data.get("metadata", {}),
        "on_behalf_of": merchant,
        "description": data.get("description"),
    }


def find(world: World, id: str) -> Thing:
    """The session with an id. Raises `Refusal`."""
    return world.store.get(KIND, id)


def line_items(world: World, id: str) -> Thing:
    """What is paid for in a session."""
    return listed(find(world, id)["_items"], f"/v1/checkout/sessions/{id}/line_items")


def expire(world: World, id: str) -> Thing:
    """End a session before its time. Raises `Refusal` unless it is open."""
    session = find(world, id)
    if session["status"] != "open":
        raise Refusal(
            'Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of '
            f"`{session['status']}`."
        )
    return _end(world, session)


def expire_due(world: World) -> None:
    """End the sessions whose time is up, and say so."""
    rows = world.store.db.execute(
        "select id from things indexed by sessions_by_end"
        " where kind = 'checkout.session' and json_extract(body, '$.status') = 'open'"
        " and json_extract(body, '$.expires_at') <= ?",
        (world.clock.now(),),
    ).fetchall()
    for (id,) in rows:
        _end(world, find(world, id))


def next_end(world: World) -> int | None:
    """When the next session ends by itself; None if none is open."""
    (end,) = world.store.db.execute(
        "select min(json_extract(body, '$.expires_at')) from things indexed by sessions_by_end"
        " where kind = 'checkout.session' and json_extract(body, '$.status') = 'open'"
    ).fetchone()
    return end


def _end(world: World, session: Thing) -> Thing:
    session = world.store.put({**session, "status": "expired", "url": None})
    world.tell("checkout.session.expired", session)
    return session
