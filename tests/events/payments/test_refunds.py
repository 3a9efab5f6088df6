"""Money that goes back: by the organizer's rule, by hand, and also when the processor makes trouble."""

import os
import re
import time

import pytest

from holdfast.events.payments.operations import ListPersonPayments, PaymentView, RefundPayment, list_payments, refund
from holdfast.kit.contract.caller import Caller, api_key
from holdfast.kit.contract.problems import Problem
from holdfast_demo.stripe.errors import Fault
from tests.helpers.event_visitor import Visitor, field_value, page_text
from tests.helpers.payments import ANN, Buyer, PaymentScene, handle_of, own_page_path, pay_for_seat

MANY_PAYMENTS = max(int(os.environ.get("HOLDFAST_SOAK", "0")), 100)
"""`HOLDFAST_SOAK=20000 pytest -s` cancels an event with 20,000, and prints how long it takes."""


async def payment(payment_scene: PaymentScene, caller: Caller, ann: Buyer) -> PaymentView:
    command = ListPersonPayments(event_id=ann.event_id, user_id=handle_of(ann))
    [view] = await payment_scene.service.database.read(lambda reader: list_payments(reader, caller, command))
    return view


@pytest.mark.parametrize(("days", "back"), [(0, 1200), (40, 0)])
async def test_a_person_who_cancels_gets_the_refund_of_the_rule(
    payment_scene: PaymentScene, days: int, back: int
) -> None:
    """The event is in 30 days."""
    ada = await payment_scene.organizer()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = %(days)s", days=days)
    ann = await pay_for_seat(payment_scene, ada)
    path = await own_page_path(payment_scene, ann)
    page = await ann.visitor.http.get(f"{path}/cancel")
    assert ("you get €12.00 back" in page_text(page)) is bool(back)

    await ann.visitor.http.post(f"{path}/cancel", data={"token": field_value(page, "token")})
    await payment_scene.service.complete_cancellations()
    await payment_scene.work()

    done = await ann.visitor.http.get(path)
    assert ("€12.00 goes back to you." if back else "You get nothing back:") in page_text(done)
    assert await payment_scene.counts(ann.event_id) == {}
    assert payment_scene.moved_amount("refund") == back


async def test_the_mail_about_a_refund_knows_the_language_of_a_registration_that_is_gone(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)
    visitor = Visitor(payment_scene.service, language="de")
    ann = Buyer(payment_scene, visitor, await visitor.register(event_id, ANN), event_id, ANN)
    await payment_scene.service.settle()
    await payment_scene.work()
    await ann.pay()
    await payment_scene.deliver()

    await ada.delete(f"/api/registrations/{event_id}/{handle_of(ann)}")

    rows = await payment_scene.service.run_sql(
        "select arguments ->> 'language', arguments ->> 'reason' from mails where kind = 'refund'"
    )
    assert rows == [("de", "seat_lost")]


async def test_a_person_sees_on_the_own_page_what_was_refunded(payment_scene: PaymentScene) -> None:
    ann = await pay_for_seat(payment_scene, await payment_scene.organizer())
    path = await own_page_path(payment_scene, ann)
    assert "Refunded" not in page_text(await ann.visitor.http.get(path))

    await payment_scene.service.run_sql(
        "insert into refunds (payment_id, amount, reason) select id, 450, 'by_organizer' from payments"
    )

    assert "Paid €12.00 Refunded €4.50" in page_text(await ann.visitor.http.get(path))


async def test_a_changed_refund_rule_does_not_apply_to_earlier_payments(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    await payment_scene.service.run_sql("update payout_accounts set refund_days = 3650")

    assert "you get €12.00 back" in page_text(await ann.visitor.http.get(await own_page_path(payment_scene, ann)))


async def test_a_person_whom_the_organizer_removes_is_refunded_in_full(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = 3650")
    ann = await pay_for_seat(payment_scene, ada)

    await ada.delete(f"/api/registrations/{ann.event_id}/{handle_of(ann)}")
    await payment_scene.work()

    assert (payment_scene.moved_amount("refund"), payment_scene.moved_amount("application_fee_refund")) == (1200, 60)


async def test_a_part_is_given_back_by_hand_and_never_more_than_was_paid(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    caller = api_key(1, ada.id)
    made = await payment(payment_scene, caller, ann)
    assert (made.status, made.fee, made.refundable) == ("paid", 60, 1200)

    async def give(amount: int) -> int:
        command = RefundPayment(event_id=ann.event_id, user_id=handle_of(ann), payment_id=made.id, amount=amount)
        return (await payment_scene.service.database.transact(lambda tx: refund(tx, caller, command))).left

    assert await give(500) == 700
    with pytest.raises(Problem, match="amount"):
        await give(701)
    assert await give(700) == 0
    await payment_scene.work()

    after = await payment(payment_scene, caller, ann)
    assert [(refund.amount, refund.status) for refund in after.refunds] == [(500, "made"), (700, "made")]
    assert (payment_scene.moved_amount("refund"), payment_scene.moved_amount("transfer_reversal")) == (1200, 1200)
    assert await payment_scene.counts(ann.event_id) == {"registered": 1}


@pytest.mark.parametrize("kind", ["before", "after", "remembered", "down"])
async def test_a_refund_whose_answer_is_lost_is_made_exactly_once(payment_scene: PaymentScene, kind: str) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    payment_scene.processor.plan(Fault(kind, "/refunds", times=7 if kind == "remembered" else 1))  # pyright: ignore[reportArgumentType]

    await ada.delete(f"/api/registrations/{ann.event_id}/{handle_of(ann)}")
    for _ in range(14):
        await payment_scene.service.run_sql("update refunds set due_at = now() where state = 'wanted'")
        await payment_scene.work()

    assert await payment_scene.service.run_sql("select state::text, amount from refunds") == [("made", 1200)]
    assert payment_scene.moved_amount("refund") == 1200


async def test_a_refund_that_the_bank_returns_is_shown_as_refused(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    payment_scene.processor.leave_refunds_pending()
    await ada.delete(f"/api/registrations/{ann.event_id}/{handle_of(ann)}")
    await payment_scene.work()

    payment_scene.processor.settle_refund(payment_scene.processor.things("refund")[0]["id"], "expired_or_canceled_card")
    await payment_scene.deliver()

    [(state, error)] = await payment_scene.service.run_sql("select state::text, error from refunds")
    assert (state, bool(re.search("card", str(error)))) == ("refused", True)


async def test_no_more_than_was_paid_can_be_stored_as_given_back(payment_scene: PaymentScene) -> None:
    ann = await pay_for_seat(payment_scene, await payment_scene.organizer())
    assert ann
    with pytest.raises(Exception, match="no_more_is_given_back_than_was_paid"):
        await payment_scene.service.run_sql(
            "insert into refunds (payment_id, amount, reason) select id, 1201, 'by_organizer' from payments"
        )


async def test_a_cancelled_event_gives_all_of_its_payments_back(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    await payment_scene.service.run_sql(
        """
        insert into payments (event_id, user_id, arrival, amount, fee, currency, account_id, state, session_id,
                              intent_id, ends_at, paid_at)
        select event_id, user_id, arrival + number, amount + number, fee, currency, account_id, state,
               session_id || number, intent_id || number, ends_at, paid_at
          from payments, generate_series(1, %(more)s::bigint) as number
        """,
        more=MANY_PAYMENTS - 1,
    )

    began = time.monotonic()
    await ada.delete(f"/api/events/{ann.event_id}")
    print(f"{MANY_PAYMENTS} payments: given back in {time.monotonic() - began:.1f} s")

    assert await payment_scene.service.run_sql(
        "select count(*), bool_and(refunded = payments.amount), bool_and(refunds.amount = payments.amount)"
        "  from payments join refunds on payment_id = payments.id"
    ) == [(MANY_PAYMENTS, True, True)]
    assert await payment_scene.service.run_sql(
        "select count(distinct thread), bool_and((arguments ->> 'amount')::int = refunds.amount)"
        "  from mails join refunds on thread = 'refund ' || refunds.id where kind = 'refund'"
    ) == [(MANY_PAYMENTS, True)]
