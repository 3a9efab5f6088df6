"""Refunds, and their effect on transfer, fee and books."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_demo.stripe.books import UnbalancedBooks
from holdfast_demo.stripe.processor import StripeDouble
from tests.demo.stripe.processor import ACCOUNT_V2, ProcessorScene

BACK: Any = {"reverse_transfer": True, "refund_application_fee": True}

WRONG: list[tuple[Any, str]] = [
    ({}, "payment_intent"),
    ({"payment_intent": "pi_none"}, "payment_intent"),
    ({"payment_intent": "pi_none", "amount": 0}, "payment_intent"),
    ({"payment_intent": "pi_none", "amont": 10}, "amont"),
    ({"payment_intent": "pi_none", "reason": "because"}, "reason"),
    ({"payment_intent": "pi_none", "reverse_transfer": "yes"}, "reverse_transfer"),
]


async def pay(scene: ProcessorScene, account: str, **changes: Any) -> str:
    """The id of a payment."""
    session = await scene.session(account, **changes)
    return scene.processor.pay(session.id)["payment_intent"]


async def test_a_refund_in_full_takes_everything_back_from_account_and_platform(scene: ProcessorScene) -> None:
    account = await scene.account()
    payment = await pay(scene, account)

    refund = await scene.do(scene.client.v1.refunds.create, {"payment_intent": payment, **BACK})

    assert (refund.status, refund.amount, refund.payment_intent) == ("succeeded", 2500, payment)
    assert scene.processor.balance(account) == {"eur": 0}
    assert scene.processor.balance("cardholders") == {"eur": 0}
    assert scene.processor.balance("platform") == {"eur": -62}
    charge = (await scene.recorder.wait_for("charge.refunded")).body["data"]["object"]
    assert (charge["amount_refunded"], charge["refunded"]) == (2500, True)
    assert (await scene.recorder.wait_for("refund.created")).body["data"]["object"]["id"] == refund.id
    (transfer,) = (await scene.do(scene.client.v1.transfers.list, {"destination": account})).data
    (reversal,) = (await scene.do(scene.client.v1.transfers.reversals.list, transfer.id)).data
    assert (transfer.reversed, reversal.amount, reversal.source_refund) == (True, 2500, refund.id)
    (fee,) = (await scene.do(scene.client.v1.application_fees.list)).data
    assert (fee.amount, fee.amount_refunded, fee.refunded) == (250, 250, True)


async def test_a_refund_without_reversing_the_transfer_leaves_the_account_its_money(scene: ProcessorScene) -> None:
    account = await scene.account()
    payment = await pay(scene, account)

    await scene.do(scene.client.v1.refunds.create, {"payment_intent": payment})

    assert scene.processor.balance(account) == {"eur": 2250}
    assert scene.processor.balance("platform") == {"eur": 250 - 2500 - 62}


async def test_no_more_is_refunded_than_was_paid(scene: ProcessorScene) -> None:
    payment = await pay(scene, await scene.account())
    create = scene.client.v1.refunds.create

    too_much = await scene.refuses(create, {"payment_intent": payment, "amount": 2501, **BACK})
    await scene.do(create, {"payment_intent": payment, "amount": 2000, **BACK})
    again = await scene.refuses(create, {"payment_intent": payment, "amount": 501, **BACK})
    rest = await scene.do(create, {"payment_intent": payment, **BACK})
    over = await scene.refuses(create, {"payment_intent": payment, **BACK})

    assert too_much.param == again.param == "amount"
    assert rest.amount == 500
    assert over.code == "charge_already_refunded"


async def test_a_refund_of_nothing_is_refused(scene: ProcessorScene, subtests: pytest.Subtests) -> None:
    for params, param in WRONG:
        with subtests.test(params=params):
            refusal = await scene.refuses(scene.client.v1.refunds.create, params)

            assert refusal.param == param


async def test_a_fee_that_was_not_taken_cannot_be_given_back(scene: ProcessorScene) -> None:
    payment = await pay(scene, await scene.account(), fee=0)

    refusal = await scene.refuses(scene.client.v1.refunds.create, {"payment_intent": payment, **BACK})

    assert refusal.param == "refund_application_fee"
    assert scene.processor.balance("cardholders") == {"eur": -2500}


async def test_a_refund_may_be_pending_and_fail(scene: ProcessorScene) -> None:
    account = await scene.account()
    payment = await pay(scene, account)
    scene.processor.leave_refunds_pending()
    refund = await scene.do(scene.client.v1.refunds.create, {"payment_intent": payment, **BACK})
    assert refund.status == "pending"

    scene.processor.settle_refund(refund.id, "expired_or_canceled_card")

    event = (await scene.recorder.wait_for("refund.updated")).body
    assert event["data"]["object"]["status"] == "failed"
    seen = await scene.do(scene.client.v1.refunds.retrieve, refund.id)
    assert (seen.status, seen.failure_reason) == ("failed", "expired_or_canceled_card")
    intent = await scene.do(scene.client.v1.payment_intents.retrieve, payment, {"expand": ["latest_charge"]})
    charge: Any = intent.latest_charge
    assert charge.amount_refunded == 0
    assert scene.processor.balance("cardholders") == {"eur": -2500}


async def test_refunds_of_a_payment_are_listed_newest_first(scene: ProcessorScene) -> None:
    account = await scene.account()
    payment, other = await pay(scene, account), await pay(scene, account)
    create = scene.client.v1.refunds.create
    made = [
        await scene.do(create, {"payment_intent": payment, "amount": amount, "metadata": {"refund": str(amount)}})
        for amount in (100, 200)
    ]
    await scene.do(create, {"payment_intent": other})

    listed = await scene.do(scene.client.v1.refunds.list, {"payment_intent": payment})

    assert [refund.id for refund in listed.data] == [refund.id for refund in reversed(made)]
    assert [refund.amount for refund in listed.data] == [200, 100]
    assert listed.data[0].metadata is not None
    assert listed.data[0].metadata.to_dict() == {"refund": "200"}


async def test_the_balance_is_the_sum_of_the_books(scene: ProcessorScene) -> None:
    account = await scene.account()
    await pay(scene, account)

    mine = await scene.do(scene.client.v1.balance.retrieve)
    theirs = await scene.do(scene.client.v1.balance.retrieve, {}, {"stripe_account": account})

    assert [(funds.currency, funds.amount) for funds in mine.available] == [("eur", 188)]
    assert [(funds.currency, funds.amount) for funds in theirs.available] == [("eur", 2250)]


@given(
    amount=st.integers(50, 99_999_999),
    percent=st.integers(0, 99),
    cuts=st.lists(st.floats(0.01, 0.99), max_size=5),
)
def test_partial_refunds_of_any_size_sum_to_the_whole_payment(amount: int, percent: int, cuts: list[float]) -> None:
    processor = StripeDouble("http://processor.test")
    try:
        account = processor.execute("POST", "/v2/core/accounts", ACCOUNT_V2)["id"]
        processor.finish(account)
        session = processor.execute(
            "POST",
            "/v1/checkout/sessions",
            {
                "mode": "payment",
                "line_items": [
                    {
                        "quantity": 1,
                        "price_data": {"currency": "usd", "unit_amount": amount, "product_data": {"name": "Seat"}},
                    }
                ],
                "payment_intent_data": {
                    "application_fee_amount": amount * percent // 100,
                    "transfer_data": {"destination": account},
                },
                "success_url": "https://events.example/done",
            },
        )
        payment = processor.pay(session["id"])["payment_intent"]
        back = BACK if amount * percent // 100 else {"reverse_transfer": True}
        left = amount
        for cut in cuts:
            part = int(left * cut)
            if part:
                processor.execute("POST", "/v1/refunds", {"payment_intent": payment, "amount": part, **back})
                left -= part
                assert processor.balance(account)["usd"] >= 0
        processor.execute("POST", "/v1/refunds", {"payment_intent": payment, **back})

        assert processor.balance(account)["usd"] == 0
        assert processor.balance("cardholders") == {"usd": 0}
        processor.check()
    finally:
        processor.close()


async def test_a_movement_that_does_not_sum_to_zero_is_not_entered(scene: ProcessorScene) -> None:
    with pytest.raises(UnbalancedBooks, match="does not sum to zero"):
        scene.processor.books.enter("charge", "ch_1", 0, "eur", {"platform": 5, "cardholders": -4})

    assert scene.processor.books.entries() == []
