"""Payments that the holder of a card disputes: they are stored and shown, and their refunds wait."""

from typing import Any, Literal

import pytest

from holdfast.events.payments.operations import ListPersonPayments, RefundPayment, list_payments, refund
from holdfast.events.payments.reconciliation import reconcile
from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.steps import Steps
from tests.events.console.paid_scene import pay_for_seat
from tests.helpers.event_visitor import page_text
from tests.helpers.payments import PaymentScene, open_dispute

Outcome = Literal["won", "lost"]


async def states(payment_scene: PaymentScene) -> list[tuple[Any, ...]]:
    return await payment_scene.service.run_sql("select state::text, amount from disputes")


async def refunds(payment_scene: PaymentScene) -> list[tuple[Any, ...]]:
    return await payment_scene.service.run_sql("select state::text, error from refunds")


@pytest.mark.parametrize("outcome", ["won", "lost"])
async def test_a_dispute_is_stored_and_shown_until_it_has_ended(payment_scene: PaymentScene, outcome: Outcome) -> None:
    browser, _, page = await pay_for_seat(payment_scene)
    dispute = await open_dispute(payment_scene)
    await payment_scene.deliver()
    opened, payments_page, listed = (
        await states(payment_scene),
        await browser.get(page),
        await browser.get(list_of(page)),
    )
    payment_scene.processor.decide(dispute, outcome)
    await payment_scene.deliver()
    ended = await browser.get(page)

    assert (opened, await states(payment_scene)) == ([("open", 1200)], [(outcome, 1200)])
    assert "The holder of the card disputes it. The bank has the money until it has decided. €12.00." in page_text(
        payments_page
    )
    assert "The holder of the card disputes it." in page_text(listed)
    assert "Nothing can be refunded now" in page_text(payments_page)
    assert 'name="amount-' not in payments_page.text
    assert ('name="amount-' in ended.text) is (outcome == "won")
    assert "It was disputed, and the bank has" in page_text(ended)


@pytest.mark.parametrize(("outcome", "becomes", "back"), [("won", "made", 1200), ("lost", "refused", 0)])
async def test_a_refund_waits_until_a_dispute_is_decided(
    payment_scene: PaymentScene, outcome: Outcome, becomes: str, back: int
) -> None:
    await pay_for_seat(payment_scene)
    dispute = await open_dispute(payment_scene)
    await payment_scene.deliver()
    await payment_scene.service.run_sql("update events set cancelled_at = now()")
    await payment_scene.work()
    [(waiting, why)] = await refunds(payment_scene)
    payment_scene.processor.decide(dispute, outcome)
    await payment_scene.deliver()

    assert (waiting, payment_scene.moved_amount("refund")) == ("wanted", back)
    assert why.startswith("The holder of the card disputes the payment at the bank.")
    [(state, error)] = await refunds(payment_scene)
    assert state == becomes
    assert (error is None) is (outcome == "won")


async def test_a_decided_dispute_makes_refunds_due_also_without_the_trigger_for_older_versions(
    payment_scene: PaymentScene,
) -> None:
    await payment_scene.service.run_sql("alter table disputes disable trigger free_refunds")
    await pay_for_seat(payment_scene)
    dispute = await open_dispute(payment_scene)
    await payment_scene.deliver()
    await payment_scene.service.run_sql("update events set cancelled_at = now()")
    await payment_scene.work()
    await payment_scene.service.run_sql("update refunds set due_at = 'infinity'")
    payment_scene.processor.decide(dispute, "won")
    await payment_scene.deliver()

    assert payment_scene.moved_amount("refund") == 1200
    assert [state for state, _ in await refunds(payment_scene)] == ["made"]


async def test_a_refund_that_is_faster_than_the_message_waits_too(payment_scene: PaymentScene) -> None:
    await pay_for_seat(payment_scene)
    dispute = await open_dispute(payment_scene)
    await payment_scene.service.run_sql("update events set cancelled_at = now()")
    await payment_scene.work()
    [(waiting, _)] = await refunds(payment_scene)
    payment_scene.processor.decide(dispute, "won")
    await payment_scene.deliver()

    assert (waiting, payment_scene.moved_amount("refund")) == ("wanted", 1200)
    assert [state for state, _ in await refunds(payment_scene)] == ["made"]


async def test_a_disputed_payment_cannot_be_refunded_by_hand(payment_scene: PaymentScene) -> None:
    _, ann, _ = await pay_for_seat(payment_scene)
    await open_dispute(payment_scene)
    await payment_scene.deliver()
    caller = await owner(payment_scene)
    event_id, user_id = ann.event_id, ann.path.split("-")[1]
    list_command = ListPersonPayments(event_id=event_id, user_id=user_id)
    [made] = await payment_scene.service.database.read(lambda reader: list_payments(reader, caller, list_command))
    command = RefundPayment(event_id=event_id, user_id=user_id, payment_id=made.id, amount=100)

    with pytest.raises(Problem) as refusal:
        await payment_scene.service.database.transact(lambda tx: refund(tx, caller, command))

    assert (made.blocked, made.refundable) == ("open", 0)
    assert "the bank has not decided yet" in refusal.value.errors["amount"][0]


async def test_reconciling_finds_a_dispute_of_which_no_message_came_and_agrees_afterwards(
    payment_scene: PaymentScene,
) -> None:
    await pay_for_seat(payment_scene)
    payment_scene.processor.webhooks.dropped = {"charge.dispute.created", "charge.dispute.funds_withdrawn"}
    await open_dispute(payment_scene)

    reconciliation = await reconcile(Steps(payment_scene.service.database))
    await payment_scene.work()
    again = await reconcile(Steps(payment_scene.service.database))

    assert [difference.kind for difference in reconciliation.differences] == ["dispute_not_noted"]
    assert (await states(payment_scene), again.differences) == ([("open", 1200)], [])


async def test_a_dispute_of_an_unknown_payment_changes_nothing(payment_scene: PaymentScene) -> None:
    browser, _, page = await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql(
        "insert into disputes (dispute_id, intent_id, state, amount) values ('du_1', 'pi_of_another_shop', 'open', 1)"
    )

    assert 'name="amount-' in (await browser.get(page)).text


async def owner(payment_scene: PaymentScene) -> Caller:
    """No matter who has made the event."""
    [(organizer_id,)] = await payment_scene.service.run_sql("select organizer_id from events")
    return api_key(1, organizer_id)


def list_of(page: str) -> str:
    """The path of the list of payments for the event of a payment's page."""
    return f"{page.partition('/registrations/')[0]}/payments"
