"""The page of one person's payments: it shows them and refunds a part; never of another organizer's people."""

import pytest

from holdfast.events.console.payments.payments_page import REFUND
from holdfast.events.payments.operations import RefundPayment
from holdfast.events.service import IDEMPOTENCY
from holdfast.kit.contract.caller import api_key
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.runner import Runner
from tests.events.console.organizer_scene import hidden_field
from tests.events.console.organizing import sign_in_organizer
from tests.events.console.paid_scene import give_back, pay_for_seat
from tests.helpers.event_visitor import page_text
from tests.helpers.payments import PaymentScene


async def test_the_amount_to_refund_is_shown_before_a_seat_is_taken_away_or_the_event_cancelled(
    payment_scene: PaymentScene,
) -> None:
    browser, ann, page = await pay_for_seat(payment_scene)
    person = page.removesuffix("/payments")
    cancelling = f"/console/events/{ann.event_id}/cancel"

    before = [page_text(await browser.get(path)) for path in (f"{person}?do=wait", f"{person}?do=remove", cancelling)]
    await browser.send(person, do="wait")
    after = [page_text(await browser.get(path)) for path in (f"{person}?do=remove", cancelling)]

    for text in before[:2]:
        assert "€12.00 was paid by card. What has not gone back yet goes back in full." in text
    assert "€12.00 is refunded to cards. Each person gets back in full what was paid by card." in before[2]
    assert "Nothing is refunded" in after[0]
    assert "Nothing is refunded: nothing was paid by card." in after[1]


async def test_a_part_of_a_payment_is_refunded_and_the_person_keeps_the_seat(payment_scene: PaymentScene) -> None:
    browser, ann, page = await pay_for_seat(payment_scene)
    text = page_text(await browser.get(page))
    assert "€12.00 Paid" in text
    assert "Paid by card €12.00 Fee of the platform -€0.60 You get €11.40" in text
    assert page in (await browser.get(page.removesuffix("/payments"))).text

    assert await give_back(browser, page, "4,50") == 303
    await payment_scene.work()

    after = page_text(await browser.get(page))
    assert "€12.00 Partly refunded" in after
    assert "Refunded: by you -€4.50 Fee of the platform -€0.37 You get €7.13" in after
    assert payment_scene.moved_amount("refund") == 450
    assert await payment_scene.counts(ann.event_id) == {"registered": 1}


async def test_the_page_of_a_registration_shows_the_payment_and_the_noted_amount(payment_scene: PaymentScene) -> None:
    browser, _, page = await pay_for_seat(payment_scene)
    page = page.removesuffix("/payments")
    before = page_text(await browser.get(page))

    await note(payment_scene, 1000)

    assert "Paid by card €12.00 · Payments and refunds" in before
    assert "not by card" not in before
    assert "Paid by card €12.00 · Payments and refunds Paid, not by card €10.00" in page_text(await browser.get(page))
    table = (await browser.get(f"{page.rpartition('/')[0]}.csv")).text
    assert ",12.00,EUR," in table
    assert ",10.00," not in table


async def test_a_noted_amount_without_a_card_payment_is_shown_as_a_note(payment_scene: PaymentScene) -> None:
    browser, _, page = await pay_for_seat(payment_scene)
    await payment_scene.service.run_sql("update payments set state = 'ended', paid_at = null")

    await note(payment_scene, 1200)

    text = page_text(await browser.get(page.removesuffix("/payments")))
    assert "Paid by card €0.00 · Payments and refunds Paid, not by card €12.00" in text


async def note(payment_scene: PaymentScene, amount: int) -> None:
    """Note another amount as paid, as organizers do by the API."""
    await payment_scene.service.run_sql("update registrations set amount_paid = %(amount)s", amount=amount)


async def test_a_refund_form_sent_twice_refunds_once(payment_scene: PaymentScene) -> None:
    browser, _, page = await pay_for_seat(payment_scene)
    payments_page = await browser.get(page)
    form = {name: hidden_field(payments_page, name) for name in ("token", "once", "payment")}
    form[f"amount-{form['payment']}"] = "5"

    answers = [(await browser.http.post(page, data=form)).status_code for _ in range(2)]
    await payment_scene.work()

    assert answers == [303, 303]
    assert payment_scene.moved_amount("refund") == 500


@pytest.mark.parametrize("amount", ["", "0", "12.01", "-1", "1.234", "x", "9" * 30])
async def test_an_invalid_amount_to_refund_is_refused_beside_its_field(
    payment_scene: PaymentScene, amount: str
) -> None:
    browser, _, page = await pay_for_seat(payment_scene)

    assert await give_back(browser, page, amount) == 422
    await payment_scene.work()
    assert payment_scene.moved_amount("refund") == 0


async def test_payments_of_another_organizer_cannot_be_read_or_refunded(payment_scene: PaymentScene) -> None:
    ada, _, page = await pay_for_seat(payment_scene)
    _, bob = await sign_in_organizer(payment_scene.service, "bob")
    payments_page = await ada.get(page)
    form = {
        "once": hidden_field(payments_page, "once"),
        "payment": hidden_field(payments_page, "payment"),
        "amount-1": "1",
    }
    keys_page = await bob.get("/console/agents")

    assert (await bob.get(page)).status_code == 404
    assert (await bob.http.post(page, data={**form, "token": hidden_field(keys_page, "token")})).status_code == 404
    assert (
        await ada.http.post(page, data={**form, "token": hidden_field(payments_page, "token"), "payment": "99"})
    ).status_code == 404
    await payment_scene.work()
    assert payment_scene.moved_amount("refund") == 0


async def test_the_operation_to_refund_refuses_foreign_and_missing_payments(payment_scene: PaymentScene) -> None:
    _, ann, page = await pay_for_seat(payment_scene)
    refund = Runner((REFUND,), payment_scene.service.database, IDEMPOTENCY).run_of(REFUND)
    [(owner,)] = await payment_scene.service.run_sql("select organizer_id from events")
    command = RefundPayment(event_id=ann.event_id, user_id=page.split("/")[-2], payment_id=1, amount=1)
    nothing = RefundPayment(event_id=ann.event_id, user_id=command.user_id, payment_id=99, amount=1)

    for caller, refused_command, code in (
        (api_key(9, 999), command, "forbidden"),
        (api_key(1, owner), nothing, "not_found"),
    ):
        with pytest.raises(Problem) as refusal:
            await refund(caller, refused_command)
        assert refusal.value.type.code == code
