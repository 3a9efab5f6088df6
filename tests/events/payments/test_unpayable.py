"""Prices that cannot be charged hold no seat; payments of wrong amounts are refunded."""

from typing import Any

import pytest

from holdfast_demo.stripe.store import StripeObject
from tests.helpers.event_visitor import Visitor, field_value, page_state, page_text
from tests.helpers.events_service import Client
from tests.helpers.payments import PaymentScene

ANN, BEN = "ann@example.com", "ben@example.com"


async def payment_of(ada: Client, event_id: int) -> tuple[str, str, bool]:
    """What an event says about paying: the status, its reason, whether people can register."""
    event = (await ada.get(f"/api/events/{event_id}")).json()["data"]
    ready = event["agent"]["hosted_registration_ready"]
    return event["payment"]["status"], event["payment"]["status_reason"], ready


async def price(ada: Client, event_id: int, amount: int) -> None:
    answer = await ada.patch(f"/api/events/{event_id}", {"event": {"price": amount}})
    assert answer.status_code == 200, answer.text


async def test_a_price_that_cannot_be_charged_holds_no_seat_and_the_form_says_why(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    for currency, fair, unfair in (("EUR", 50, 49), ("JPY", 50, 49), ("KWD", 1230, 1234), ("ISK", 1, 10**10)):
        event_id = await payment_scene.event(ada, currency=currency, price=fair)
        visitor = Visitor(payment_scene.service)
        token = field_value(await visitor.open(event_id), "token")
        assert await payment_of(ada, event_id) == ("required", "organizer_processor_ready", True)

        await price(ada, event_id, unfair)
        refusal = await visitor.post(event_id, token=token, email=ANN)

        assert await payment_of(ada, event_id) == ("unavailable", "organizer_processor_ready", False)
        assert (refusal.status_code, page_state(refusal)) == (422, "unpayable_price")
        assert page_state(await visitor.open(event_id)) == "unpayable_price"
        assert "cannot be paid by card" in page_text(refusal)
        assert await payment_scene.counts(event_id) == {}

        await price(ada, event_id, fair)
        ann = await payment_scene.register(event_id, ANN)
        assert await ann.link()


async def test_a_registration_by_key_at_a_price_that_cannot_be_charged_is_accepted(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, price=10)

    await ada.register(event_id, email=ANN)
    await payment_scene.service.settle()

    assert await payment_scene.counts(event_id) == {"registered": 1}


async def another_session(payment_scene: PaymentScene, amount: int, currency: str) -> StripeObject:
    """A session for another amount than was asked for, which has been paid."""
    [account] = await payment_scene.service.run_sql("select account_id from payout_accounts")
    cost = {"currency": currency, "unit_amount": amount, "product_data": {"name": "Seat"}}
    parameters: dict[str, Any] = {
        "mode": "payment",
        "line_items": [{"quantity": 1, "price_data": cost}],
        "payment_intent_data": {"application_fee_amount": 10, "transfer_data": {"destination": account[0]}},
        "success_url": "https://events.example/done",
    }
    return payment_scene.processor.pay(
        payment_scene.processor.execute("POST", "/v1/checkout/sessions", parameters)["id"]
    )


@pytest.mark.parametrize(
    ("amount", "currency", "amount_text"), [(700, "eur", "€7.00"), (1300, "eur", "€13.00"), (1200, "usd", "$12.00")]
)
async def test_a_payment_of_a_wrong_amount_is_refunded_and_the_seat_goes_to_the_next_person(
    payment_scene: PaymentScene, amount: int, currency: str, amount_text: str
) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), waitinglist_capacity=1)
    ann, ben = [await payment_scene.register(event_id, email) for email in (ANN, BEN)]
    session = await another_session(payment_scene, amount, currency)
    await payment_scene.service.run_sql(
        "update payments set session_id = %(id)s, due_at = now() where state = 'open'", id=session["id"]
    )

    await payment_scene.work()

    assert await ann.status() == "rejected"
    assert f"goes back to you in full: {amount_text}." in page_text(await ann.page())
    assert await ben.status() == "held"
    [charge] = payment_scene.processor.things("charge")
    assert (charge["amount"], charge["currency"], charge["amount_refunded"]) == (amount, currency, amount)
    assert await payment_scene.service.run_sql("select state::text, amount, error from refunds") == [
        ("made", amount, None)
    ]
    mails = await payment_scene.service.run_sql(
        "select kind, arguments ->> 'reason', (arguments ->> 'amount')::int, arguments ->> 'currency' from mails"
        " where recipient = %(email)s order by kind",
        email=ANN,
    )
    assert mails == [("refund", "no_seat", amount, currency.upper()), ("refused", "payment_refused", None, None)]
