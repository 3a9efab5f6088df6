"""Checkout Sessions, as stripe-python sees them."""

import pytest
import stripe

from holdfast_demo.stripe.errors import StripeRefusal
from tests.demo.stripe.processor import ProcessorScene

_PLAN: dict[str, object] = {"application_fee_amount": 100, "metadata": {"payment": "7"}}

REFUSED = [
    (49, "eur", "amount_too_small"),
    (29, "gbp", "amount_too_small"),
    (49, "jpy", "amount_too_small"),
    (1_000_000_000_000, "eur", "amount_too_large"),
    (1501, "kwd", "parameter_invalid_integer"),
    (1050, "isk", "parameter_invalid_integer"),
    (-1, "eur", "parameter_invalid_integer"),
    (1000, "xyz", None),
]


async def test_a_paid_session_is_complete_and_its_money_is_divided(scene: ProcessorScene) -> None:
    account = await scene.account()
    session = await scene.session(account, metadata={"payment": "7"})
    assert (session.status, session.payment_status, session.payment_intent) == ("open", "unpaid", None)

    scene.processor.pay(session.id)

    expand = {"expand": ["payment_intent.latest_charge"]}
    paid = await scene.do(scene.client.v1.checkout.sessions.retrieve, session.id, expand)
    assert (paid.status, paid.payment_status, paid.url, paid.amount_total) == ("complete", "paid", None, 2500)
    assert isinstance(paid.payment_intent, stripe.PaymentIntent)
    charge = paid.payment_intent.latest_charge
    assert isinstance(charge, stripe.Charge)
    assert (charge.amount, charge.application_fee_amount, charge.amount_refunded) == (2500, 250, 0)
    assert scene.processor.balance(account) == {"eur": 2250}
    assert scene.processor.balance("platform") == {"eur": 250 - 62}
    assert scene.processor.balance("cardholders") == {"eur": -2500}
    event = (await scene.recorder.wait_for("checkout.session.completed")).body
    assert event["data"]["object"]["metadata"] == {"payment": "7"}
    assert event["data"]["object"]["payment_intent"] == paid.payment_intent.id
    assert "_plan" not in event["data"]["object"]


async def test_a_declined_card_leaves_the_session_open(scene: ProcessorScene) -> None:
    session = await scene.session()

    with pytest.raises(StripeRefusal, match="declined"):
        scene.processor.pay(session.id, "4000000000000002")

    seen = await scene.do(scene.client.v1.checkout.sessions.retrieve, session.id)
    assert seen.status == "open"
    assert scene.processor.balance("cardholders") == {}


async def test_a_session_is_paid_once(scene: ProcessorScene) -> None:
    session = await scene.session()
    scene.processor.pay(session.id)

    with pytest.raises(StripeRefusal, match="complete"):
        scene.processor.pay(session.id)

    assert len(scene.processor.things("charge")) == 1


async def test_a_session_that_was_ended_cannot_be_paid(scene: ProcessorScene) -> None:
    session = await scene.session()

    ended = await scene.do(scene.client.v1.checkout.sessions.expire, session.id)

    assert (ended.status, ended.url) == ("expired", None)
    with pytest.raises(StripeRefusal, match="expired"):
        scene.processor.pay(session.id)
    assert (await scene.recorder.wait_for("checkout.session.expired")).body["data"]["object"]["id"] == session.id


async def test_a_complete_session_cannot_be_expired(scene: ProcessorScene) -> None:
    session = await scene.session()
    scene.processor.pay(session.id)

    error = await scene.refuses(scene.client.v1.checkout.sessions.expire, session.id)

    assert "`complete`" in error.message


async def test_a_session_ends_by_itself_when_its_time_is_up(scene: ProcessorScene) -> None:
    session = await scene.session()

    scene.processor.clock.advance(1859)
    assert not scene.recorder.named("checkout.session.expired")
    scene.processor.clock.advance(10)

    event = (await scene.recorder.wait_for("checkout.session.expired")).body
    assert event["data"]["object"]["id"] == session.id
    with pytest.raises(StripeRefusal, match="expired"):
        scene.processor.pay(session.id)


@pytest.mark.parametrize(("seconds", "says"), [(1700, "at least 30 minutes"), (24 * 3600 + 60, "less than 24 hours")])
async def test_a_session_lives_from_half_an_hour_to_a_day(scene: ProcessorScene, seconds: int, says: str) -> None:
    params = scene.params(await scene.account(), expires_at=scene.processor.clock.now() + seconds)

    error = await scene.refuses(scene.client.v1.checkout.sessions.create, params)

    assert error.param == "expires_at"
    assert says in error.message


async def test_amounts_that_the_processor_does_not_take_are_refused(
    scene: ProcessorScene, subtests: pytest.Subtests
) -> None:
    account = await scene.account()
    for amount, currency, code in REFUSED:
        with subtests.test(amount=amount, currency=currency):
            params = scene.params(account, amount=amount, currency=currency, fee=0)

            error = await scene.refuses(scene.client.v1.checkout.sessions.create, params)

            assert error.code == code


async def test_amounts_that_the_processor_takes_are_charged_as_they_are(scene: ProcessorScene) -> None:
    for amount, currency, fee in ((50, "eur", 9), (50, "jpy", 9), (1500, "kwd", 10), (1000, "isk", 100)):
        account = await scene.account()
        session = await scene.session(account, amount=amount, currency=currency, fee=fee)

        scene.processor.pay(session.id)

        assert scene.processor.balance(account) == {currency: amount - fee}


async def test_fees_and_refunds_must_end_in_zeros_as_the_amounts_of_their_currency_do(scene: ProcessorScene) -> None:
    account = await scene.account()
    params = scene.params(account, amount=1500, currency="kwd", fee=75)
    refusal = await scene.refuses(scene.client.v1.checkout.sessions.create, params)
    session = await scene.session(account, amount=1500, currency="kwd", fee=70)
    intent = scene.processor.pay(session.id)["payment_intent"]
    part = await scene.refuses(scene.client.v1.refunds.create, {"payment_intent": intent, "amount": 755})

    assert (refusal.param, part.param) == ("payment_intent_data[application_fee_amount]", "amount")


async def test_a_destination_has_to_be_ready(scene: ProcessorScene) -> None:
    create = scene.client.v1.checkout.sessions.create

    unfinished = await scene.refuses(create, scene.params(await scene.account(done=False)))
    unknown = await scene.refuses(create, scene.params("acct_unknown"))

    assert unfinished.code == "insufficient_capabilities_for_transfer"
    assert (unknown.code, unknown.status) == ("resource_missing", 400)


async def test_a_fee_is_at_most_the_amount(scene: ProcessorScene) -> None:
    params = scene.params(await scene.account(), fee=2501)

    error = await scene.refuses(scene.client.v1.checkout.sessions.create, params)

    assert error.param == "payment_intent_data[application_fee_amount]"


async def test_sessions_of_a_time_range_are_listed_page_by_page(scene: ProcessorScene) -> None:
    account = await scene.account()
    before = await scene.session(account)
    scene.processor.clock.advance(100)
    since = scene.processor.clock.now()
    made = [await scene.session(account) for _ in range(5)]
    scene.processor.pay(made[1].id)
    listing = scene.client.v1.checkout.sessions.list

    first = await scene.do(listing, {"created": {"gte": since}, "limit": 3})
    rest = await scene.do(listing, {"created": {"gte": since}, "limit": 3, "starting_after": first.data[-1].id})
    complete = await scene.do(listing, {"status": "complete", "expand": ["data.payment_intent.latest_charge"]})

    assert first.has_more
    assert not rest.has_more
    ids = [session.id for session in (*first.data, *rest.data)]
    assert ids == [session.id for session in reversed(made)]
    assert before.id not in ids
    assert [session.id for session in complete.data] == [made[1].id]
    assert isinstance(complete.data[0].payment_intent, stripe.PaymentIntent)


async def test_the_parts_of_a_payment_can_be_fetched_one_by_one(scene: ProcessorScene) -> None:
    account = await scene.account()
    session = await scene.session(account, payment_intent_data=_PLAN | {"transfer_data": {"destination": account}})
    payment = scene.processor.pay(session.id)["payment_intent"]
    v1 = scene.client.v1

    (intent,) = (await scene.do(v1.payment_intents.list)).data
    (charge,) = (await scene.do(v1.charges.list, {"payment_intent": payment})).data
    seen = await scene.do(v1.charges.retrieve, charge.id, {"expand": ["transfer", "application_fee"]})
    (item,) = (await scene.do(v1.checkout.sessions.line_items.list, session.id)).data
    retrieved = await scene.do(v1.checkout.sessions.retrieve, session.id, {"expand": ["line_items"]})

    assert (intent.id, intent.latest_charge) == (payment, charge.id)
    assert intent.metadata.to_dict() == {"payment": "7"}
    assert isinstance(seen.transfer, stripe.Transfer)
    assert isinstance(seen.application_fee, stripe.ApplicationFee)
    assert (seen.transfer.destination, seen.transfer.amount, seen.application_fee.amount) == (account, 2500, 100)
    assert (item.description, item.amount_total) == ("Life drawing", 2500)
    assert retrieved.line_items is not None
    assert [line_item.id for line_item in retrieved.line_items.data] == [item.id]
