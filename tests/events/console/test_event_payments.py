"""The list of payments for an event: paid, refunded and refused, also of erased people."""

import re

import pytest

from holdfast.events.console.payments import event_payments_pages
from tests.events.console.organizing import csv_cells, sign_in_organizer
from tests.events.console.paid_scene import give_back, pay_for_seat
from tests.helpers.event_visitor import page_text
from tests.helpers.payments import PaymentScene


async def test_the_list_of_payments_has_totals_and_links_to_people_of_deleted_registrations_too(
    payment_scene: PaymentScene,
) -> None:
    browser, ann, person = await pay_for_seat(payment_scene)
    page = f"/console/events/{ann.event_id}/payments"
    assert page in (await browser.get(f"/console/events/{ann.event_id}")).text
    assert (
        "You get €11.40 after refunds and the fee Paid by card €12.00 €12.00 in 1 payment "
        "Fee of the platform €0.60 part of each payment All times in UTC"
    ) in page_text(await browser.get(page))

    await payment_scene.service.run_sql("delete from registrations")
    await payment_scene.service.run_sql("update refunds set state = 'refused', error = 'The account is closed.'")

    payments_page = await browser.get(page)
    text = page_text(payments_page)
    assert "Paid by card €0.00 €12.00 in 1 payment, €12.00 refunded" in text
    assert "ann@example.com Refunded Paid: €12.00 Refunded: €12.00 Fee: €0.00 You get: €0.00" in text
    assert "The payment processor refuses to give money back." in text
    [link] = re.findall(r'<a href="([^"]+)"><bdi>ann@example.com</bdi>', payments_page.text)
    assert link == person
    person_page = await browser.get(link)
    assert (
        "ann@example.com" in page_text(person_page),
        person.removesuffix("/payments") + '"' in person_page.text,
    ) == (True, False)
    assert page in person_page.text


async def test_the_rest_of_a_partly_refunded_payment_is_shown_and_exported(payment_scene: PaymentScene) -> None:
    browser, ann, person = await pay_for_seat(payment_scene)
    page = f"/console/events/{ann.event_id}/payments"
    await give_back(browser, person, "3.00")
    await payment_scene.work()

    text = page_text(await browser.get(page))
    header, row = csv_cells(await browser.get(f"{page}.csv"))

    assert "You get €8.55" in text
    assert "Paid by card €9.00 €12.00 in 1 payment, €3.00 refunded Fee of the platform €0.45" in text
    assert "ann@example.com Partly refunded Paid: €12.00 Refunded: €3.00 Fee: €0.45 You get: €8.55" in text
    assert "Paid by card €9.00" in page_text(await browser.get(page.removesuffix("/payments")))
    assert header[:6] == ["E-mail address", "Status", "Paid", "Refunded", "Fee of the platform", "You get"]
    assert row[:7] == ["ann@example.com", "Paid", "12.00", "3.00", "0.45", "8.55", "EUR"]


async def test_the_file_of_payments_of_another_organizers_event_is_not_given(payment_scene: PaymentScene) -> None:
    browser, ann, _ = await pay_for_seat(payment_scene)
    _, stranger = await sign_in_organizer(payment_scene.service, "bob")
    path = f"/console/events/{ann.event_id}/payments.csv"

    assert [(await who.get(path)).status_code for who in (browser, stranger)] == [200, 404]


async def test_an_event_without_payments_says_so(payment_scene: PaymentScene) -> None:
    ada, browser = await sign_in_organizer(payment_scene.service)
    event_id = await payment_scene.event(ada)

    assert "Nobody has paid yet." in page_text(await browser.get(f"/console/events/{event_id}/payments"))
    assert (await browser.get(f"/console/events/{event_id}/registrations/sht2pjgt/payments")).status_code == 200


async def test_more_than_a_page_of_payments_are_read_in_order(
    payment_scene: PaymentScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_payments_pages, "PAGE_SIZE", 2)
    ada, browser = await sign_in_organizer(payment_scene.service)
    event_id = await payment_scene.event(ada)
    await payment_scene.service.run_sql(
        """
        insert into payments (event_id, user_id, arrival, amount, fee, currency, state, ends_at)
        select %(event_id)s, %(user_id)s, number, number * 100, 0, 'EUR', 'ended', now()
          from generate_series(1, 5) as number
        """,
        event_id=event_id,
        user_id=ada.id,
    )

    path, seen = f"/console/events/{event_id}/payments", list[str]()
    while path:
        page = await browser.get(path)
        seen += re.findall(r"Not paid in time €(\d)\.00 to pay", page_text(page))
        path = next(iter(re.findall(r'href="([^"]+)" rel="next"', page.text)), "")

    assert seen == ["5", "4", "3", "2", "1"]
    for wrong in ("0", "x", "-1", "9" * 30):
        assert (await browser.get(f"/console/events/{event_id}/payments?before={wrong}")).status_code == 200


async def test_payments_for_a_foreign_or_missing_event_are_answered_with_404(payment_scene: PaymentScene) -> None:
    _, ann, _ = await pay_for_seat(payment_scene)
    _, bob = await sign_in_organizer(payment_scene.service, "bob")

    answers = [await bob.get(f"/console/events/{id}/payments") for id in (ann.event_id, 99999, "x")]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
