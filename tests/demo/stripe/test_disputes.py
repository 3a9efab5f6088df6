"""Disputes: their movements of money, their webhooks, and how they are decided."""

from typing import Any

import pytest

from tests.demo.stripe.processor import ProcessorScene


async def dispute_payment(scene: ProcessorScene) -> tuple[str, Any]:
    """The account that a payment went to, and the dispute about it."""
    account = await scene.account()
    intent = scene.processor.pay((await scene.session(account)).id)["payment_intent"]
    (charge,) = (await scene.do(scene.client.v1.charges.list, {"payment_intent": intent})).data
    scene.processor.dispute(charge.id)
    (dispute,) = (await scene.do(scene.client.v1.disputes.list, {"payment_intent": intent})).data
    return account, dispute


async def test_a_dispute_takes_the_money_and_a_fee_from_the_platform_at_once(scene: ProcessorScene) -> None:
    account, dispute = await dispute_payment(scene)

    assert (dispute.status, dispute.amount, dispute.is_charge_refundable) == ("needs_response", 2500, False)
    assert (await scene.do(scene.client.v1.charges.retrieve, dispute.charge)).disputed
    assert scene.processor.balance("cardholders") == {"eur": 0}
    assert scene.processor.balance(account) == {"eur": 2250}
    assert scene.processor.balance("platform") == {"eur": 250 - 62 - 2500 - 2000}
    assert (await scene.recorder.wait_for("charge.dispute.created")).body["data"]["object"]["id"] == dispute.id
    assert (await scene.recorder.wait_for("charge.dispute.funds_withdrawn")).body["data"]["object"]["id"] == dispute.id
    scene.processor.check()


@pytest.mark.parametrize(
    ("evidence", "status", "back"), [("winning_evidence", "won", 2500), ("losing_evidence", "lost", 0)]
)
async def test_the_text_of_the_evidence_decides_a_dispute(
    scene: ProcessorScene, evidence: str, status: str, back: int
) -> None:
    _, dispute = await dispute_payment(scene)

    ended = await scene.do(scene.client.v1.disputes.update, dispute.id, {"evidence": {"uncategorized_text": evidence}})

    assert (ended.status, ended.evidence_details.submission_count) == (status, 1)
    assert scene.processor.balance("cardholders") == {"eur": -back}
    assert (await scene.recorder.wait_for("charge.dispute.closed")).body["data"]["object"]["status"] == status
    assert len(scene.recorder.named("charge.dispute.funds_reinstated")) == (status == "won")
    again = await scene.refuses(scene.client.v1.disputes.close, dispute.id)
    assert again.message == "This dispute is already closed"
    scene.processor.check()


async def test_evidence_that_is_not_submitted_or_not_known_leaves_the_dispute_open(scene: ProcessorScene) -> None:
    _, dispute = await dispute_payment(scene)
    text = {"uncategorized_text": "She was there."}

    updated = await scene.do(scene.client.v1.disputes.update, dispute.id, {"evidence": text, "submit": False})
    sent = await scene.do(scene.client.v1.disputes.update, dispute.id, {"evidence": text})

    assert (updated.status, updated.evidence_details.has_evidence) == ("needs_response", True)
    assert (sent.status, sent.evidence_details.submission_count) == ("under_review", 1)
    closed = await scene.do(scene.client.v1.disputes.close, dispute.id)
    assert closed.status == "lost"


async def test_a_payment_with_the_card_for_disputes_is_disputed_at_once(scene: ProcessorScene) -> None:
    session = await scene.session()
    intent = scene.processor.pay(session.id, "4000000000000259")["payment_intent"]

    (dispute,) = (await scene.do(scene.client.v1.disputes.list, {"payment_intent": intent})).data

    assert (dispute.status, dispute.reason) == ("needs_response", "fraudulent")


async def test_a_disputed_charge_is_not_refunded_unless_it_was_won(scene: ProcessorScene) -> None:
    _, dispute = await dispute_payment(scene)
    parameters: Any = {"payment_intent": dispute.payment_intent, "amount": 100}

    refusal = await scene.refuses(scene.client.v1.refunds.create, parameters)
    scene.processor.decide(dispute.id, "won")
    refund = await scene.do(scene.client.v1.refunds.create, parameters)

    assert (refusal.code, refusal.param) == ("charge_disputed", "charge")
    assert "has been charged back" in refusal.message
    assert refund.status == "succeeded"
