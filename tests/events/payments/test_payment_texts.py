"""Texts of pages and mails about money that is paid, waits or is refunded."""

import datetime as dt
from typing import Literal

import pytest

from holdfast.events.mails.model import Kind, MailArguments, MailBatch, RegistrationMail
from holdfast.events.mails.sql import MailFactsRequest, find_facts
from holdfast.events.mails.writing import message
from holdfast.events.people.model import AccountSelector
from holdfast.events.people.operations import export, preview
from holdfast.kit.pages.language import ENGLISH
from tests.helpers.event_visitor import field_value, page_text
from tests.helpers.events_service import eventually
from tests.helpers.payments import ANN, Buyer, PaymentScene, handle_of, open_dispute, own_page_path, pay_for_seat


async def refund_mails(payment_scene: PaymentScene) -> list[str]:
    """Why money goes back, as each mail about it says."""
    rows = await payment_scene.service.run_sql(
        "select arguments ->> 'reason' from mails where kind = 'refund' order by id"
    )
    return [str(reason) for (reason,) in rows]


async def money_on_pages(payment_scene: PaymentScene, ann: Buyer) -> list[str]:
    page = await ann.visitor.http.get(await own_page_path(payment_scene, ann))
    return [page_text(page), page_text(await ann.page())]


@pytest.mark.parametrize(
    ("outcome", "mail", "sentence"),
    [
        ("won", "dispute_won", "€12.00 goes back to you. Your bank may need some days."),
        ("lost", "dispute_lost", "the bank of the card has given you the money back. So there is no refund from us."),
    ],
)
async def test_a_person_who_disputes_a_payment_of_a_cancelled_event_reads_what_is_true_at_each_step(
    payment_scene: PaymentScene, outcome: Literal["won", "lost"], mail: str, sentence: str
) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    dispute_id = await open_dispute(payment_scene)
    await payment_scene.deliver()

    await ada.delete(f"/api/events/{ann.event_id}")
    await payment_scene.work()
    while_open, first_mails = await money_on_pages(payment_scene, ann), await refund_mails(payment_scene)
    payment_scene.processor.decide(dispute_id, outcome)
    await payment_scene.deliver()

    assert first_mails == ["dispute_open"]
    for page in while_open:
        assert "You are to get €12.00 back. The payment is disputed" in page
    assert await refund_mails(payment_scene) == ["dispute_open", mail]
    for page in await money_on_pages(payment_scene, ann):
        assert sentence in page


async def test_a_dispute_received_after_the_refund_corrects_the_mail(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    dispute_id = await open_dispute(payment_scene)

    await ada.delete(f"/api/events/{ann.event_id}")
    await payment_scene.work()
    await payment_scene.work()
    before = await refund_mails(payment_scene)
    payment_scene.processor.decide(dispute_id, "lost")
    await payment_scene.deliver()

    assert before == ["event_cancelled", "dispute_open"]
    assert await refund_mails(payment_scene) == [*before, "dispute_lost"]


async def test_a_refund_of_a_lost_dispute_is_mailed_once_and_not_as_money_that_comes(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    dispute_id = await open_dispute(payment_scene)
    payment_scene.processor.decide(dispute_id, "lost")
    await payment_scene.deliver()

    await ada.delete(f"/api/events/{ann.event_id}")
    await payment_scene.work()

    assert await refund_mails(payment_scene) == ["dispute_lost"]


async def test_a_refund_without_a_dispute_is_mailed_once(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)

    await ada.delete(f"/api/events/{ann.event_id}")
    await payment_scene.work()

    assert await refund_mails(payment_scene) == ["event_cancelled"]
    for page in await money_on_pages(payment_scene, ann):
        assert "€12.00 goes back to you." in page


async def cancel_on_page(payment_scene: PaymentScene, ann: Buyer) -> str:
    """What the page says after the question whether to cancel was answered."""
    path = await own_page_path(payment_scene, ann)
    page = await ann.visitor.http.get(f"{path}/cancel")
    await ann.visitor.http.post(f"{path}/cancel", data={"token": field_value(page, "token")})
    await payment_scene.service.complete_cancellations()
    return page_text(await ann.visitor.http.get(path))


async def test_a_person_who_cancels_during_a_dispute_reads_that_the_refund_waits(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    await open_dispute(payment_scene)
    await payment_scene.deliver()

    own_text, outcome = await money_on_pages(payment_scene, ann)
    done = await cancel_on_page(payment_scene, ann)
    await payment_scene.work()

    assert "If you cancel now, €12.00 is to go back to you, but it waits" in own_text
    assert "nothing goes back before it has decided" in outcome
    assert "Full refund" not in outcome
    assert "You are to get €12.00 back. The payment is disputed" in done
    assert await refund_mails(payment_scene) == ["dispute_open"]


async def test_a_person_who_cancels_after_a_lost_dispute_is_promised_no_refund(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    payment_scene.processor.decide(await open_dispute(payment_scene), "lost")
    await payment_scene.deliver()

    texts = [*await money_on_pages(payment_scene, ann), await cancel_on_page(payment_scene, ann)]
    await payment_scene.work()

    for text in texts:
        assert "the bank of the card has given you the money back. So there is no refund from us." in text
        assert "you get" not in text
    assert await refund_mails(payment_scene) == ["dispute_lost"]


async def test_mails_about_a_payment_that_the_bank_gave_back_say_nothing_of_money_back(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    assert "Refunds" in await mail(payment_scene, ann, "event_changed")

    payment_scene.processor.decide(await open_dispute(payment_scene), "lost")
    await payment_scene.deliver()

    assert "Refunds" not in await mail(payment_scene, ann, "event_changed")


async def test_an_amount_noted_by_the_organizer_changes_nothing_for_a_person_who_paid_by_card(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    path = f"/api/registrations/{ann.event_id}/{handle_of(ann)}"

    changed = await ada.patch(path, {"registration": {"amount_paid": 5}})

    assert changed.json()["data"]["amount_paid"] == 5
    own_text = page_text(await ann.visitor.http.get(await own_page_path(payment_scene, ann)))
    assert "Paid €12.00" in own_text
    assert "If you cancel now, you get €12.00 back." in own_text
    assert "You have paid €12.00." in page_text(await ann.page())
    mail = MailFactsRequest(0, 1, "seat", "registration", ann.event_id, handle_of(ann), None)
    assert (await payment_scene.service.database.read(lambda reader: find_facts(reader, [mail])))[0].amount_paid == 1200


async def test_exported_data_keeps_the_payment_and_the_noted_amount_apart(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    await ada.patch(f"/api/registrations/{ann.event_id}/{handle_of(ann)}", {"registration": {"amount_paid": 0}})

    exported = await payment_scene.service.database.read(lambda reader: export(reader, AccountSelector(email=ANN)))
    previewed = await payment_scene.service.database.read(lambda reader: preview(reader, AccountSelector(email=ANN)))

    [registration], [payment] = exported.registrations, exported.payments
    assert (registration.paid_by_card, registration.noted_amount) == (1200, 0)
    assert (payment.state, payment.amount) == ("paid", 1200)
    assert [registration.amount_paid for registration in previewed.cancelled] == [1200]


async def test_a_hold_that_the_processor_has_not_ended_yet_has_no_button_to_pay(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    ann = await payment_scene.register(await payment_scene.event(ada), ANN)
    assert await ann.link()

    await payment_scene.service.run_sql("update payments set ends_at = now() - interval '1 second'")
    await payment_scene.service.run_sql("update registrations set held_until = now() - interval '1 second'")

    assert await ann.link() is None
    own_response = await ann.visitor.http.get(await own_page_path(payment_scene, ann))
    for page in (page_text(own_response), page_text(await ann.page())):
        assert "Your time to pay is over." in page
        assert "being prepared" not in page
    assert await ann.status() == "held"


async def test_a_person_who_pays_for_a_removed_hold_reads_that_the_money_comes_back(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    ann = await payment_scene.register(await payment_scene.event(ada), ANN)
    unpaid = ann.path
    await ann.pay()

    await ada.delete(f"/api/registrations/{ann.event_id}/{handle_of(ann)}")
    returned = await ann.visitor.http.get(f"{unpaid}?paid=1")
    looked = await ann.visitor.http.get(unpaid)
    await payment_scene.deliver()
    arrived = await ann.visitor.http.get(f"{unpaid}?paid=1")

    assert "What you have paid goes back to you in full" in page_text(returned)
    assert "goes back" not in page_text(looked)
    assert "€12.00 goes back to you." in page_text(arrived)
    assert payment_scene.moved_amount("refund") == 1200


async def test_the_own_page_of_a_removed_registration_says_what_becomes_of_the_money(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    ann = await pay_for_seat(payment_scene, ada)
    path = await own_page_path(payment_scene, ann)
    await open_dispute(payment_scene)
    await payment_scene.deliver()

    await ada.delete(f"/api/registrations/{ann.event_id}/{handle_of(ann)}")
    await payment_scene.work()
    removed = await ann.visitor.http.get(path)

    assert removed.status_code == 410
    assert "You are to get €12.00 back. The payment is disputed" in page_text(removed)


async def test_a_person_who_moved_up_after_days_and_pays_reads_the_outcome(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, waitinglist_capacity=5)
    ann, ben = await payment_scene.register(event_id, ANN), await payment_scene.register(event_id, "ben@example.com")
    await payment_scene.service.run_sql("update registrations set received_at = received_at - interval '2 days'")
    await ada.delete(f"/api/registrations/{event_id}/{handle_of(ann)}")
    await payment_scene.work()

    await ben.pay()
    await payment_scene.deliver()

    assert "You have paid €12.00." in page_text(await ben.visitor.http.get(f"{ben.path}?paid=1"))
    await payment_scene.service.run_sql("update registrations set promoted_at = promoted_at - interval '1 day'")
    assert "no longer shown" in page_text(await ben.page())


async def refund_moment(payment_scene: PaymentScene, days: int) -> str:
    """The moment this many days before the event of a scene, as its English pages and mails write it."""
    ((begins, zone),) = await payment_scene.service.run_sql("select datetime, timezone from events order by id limit 1")
    return ENGLISH.moment(begins - dt.timedelta(days=days), zone or "UTC")


async def refund_terms(payment_scene: PaymentScene, days: int) -> str:
    """The sentence about it, as `page_text` gives it."""
    return " ".join(
        f"Full refund if you cancel by {await refund_moment(payment_scene, days)}. No refund after that.".split()
    )


async def test_people_know_before_they_pay_what_goes_back_if_they_cancel(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)
    event = (await ada.get(f"/api/events/{event_id}")).json()["data"]
    embed = f"/events/{event_id}/embed"
    for address in (event["public_url"], embed):
        assert await refund_terms(payment_scene, 0) in page_text(await payment_scene.service.http.get(address))

    await payment_scene.service.run_sql("update payout_accounts set refund_days = 12")

    for address in (event["public_url"], embed):
        assert await shows(payment_scene, address, await refund_terms(payment_scene, 12))
    ann = await payment_scene.register(event_id, ANN)
    assert await ann.link()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = 3")
    held = [page_text(await ann.page()), page_text(await ann.visitor.http.get(await own_page_path(payment_scene, ann)))]
    terms = await refund_terms(payment_scene, 12)
    assert all(terms in text for text in held)
    assert all("Pay €12.00" in text for text in held)


async def shows(payment_scene: PaymentScene, address: str, sentence: str) -> bool:
    """Whether a page says something, after what was looked up before is not kept any more."""

    async def is_there() -> bool:
        return sentence in page_text(await payment_scene.service.http.get(address))

    await eventually(is_there)
    return True


async def test_people_know_after_they_paid_until_when_they_get_everything_back(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = 12")
    ann = await pay_for_seat(payment_scene, ada)

    assert f"You have paid €12.00. {await refund_terms(payment_scene, 12)}" in page_text(await ann.page())
    path = await own_page_path(payment_scene, ann)
    until = " ".join((await refund_moment(payment_scene, 12)).split())
    assert f"If you cancel now, you get €12.00 back. From {until} on you get nothing back." in page_text(
        await ann.visitor.http.get(path)
    )
    assert "bekommen Sie nichts mehr zurück." in page_text(await ann.visitor.http.get(f"{path}?lang=de"))


async def test_a_person_who_cancels_too_late_for_a_refund_reads_until_when_it_was_possible(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = 40")
    ann = await pay_for_seat(payment_scene, ada)
    path = await own_page_path(payment_scene, ann)
    page = await ann.visitor.http.get(f"{path}/cancel")

    await ann.visitor.http.post(f"{path}/cancel", data={"token": field_value(page, "token")})
    await payment_scene.service.complete_cancellations()
    done = await ann.visitor.http.get(path)

    until = " ".join((await refund_moment(payment_scene, 40)).split())
    assert f"If you cancel now, you get nothing back. A refund was possible until {until}." in page_text(page)
    assert "You get nothing back: the organizer gives money back only until 40 days before the event." in page_text(
        done
    )


async def test_a_fully_refunded_person_does_not_read_that_nothing_comes_back(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = 40")
    ann = await pay_for_seat(payment_scene, ada)

    await payment_scene.service.run_sql(
        "insert into refunds (payment_id, amount, reason) select id, amount, 'by_organizer' from payments"
    )

    assert "nothing back" not in page_text(await ann.visitor.http.get(await own_page_path(payment_scene, ann)))


@pytest.mark.parametrize(
    ("days", "terms"),
    [
        (0, "If you cancel by {moment}, you get all of it back. After that, you get nothing back."),
        (12, "If you cancel by {moment}, you get all of it back. After that, you get nothing back."),
        (40, "You get nothing back: the organizer gives money back only until 40 days before the event."),
    ],
)
async def test_mails_to_people_who_pay_say_what_goes_back(payment_scene: PaymentScene, days: int, terms: str) -> None:
    ada = await payment_scene.organizer()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = %(days)s", days=days)
    event_id = await payment_scene.event(ada)
    unpaid = await payment_scene.register(event_id, ANN)
    line = f"Refunds: {terms.format(moment=await refund_moment(payment_scene, days))}\n"
    assert line in await mail(payment_scene, unpaid, "payment_due")

    await unpaid.pay()
    await payment_scene.deliver()
    await payment_scene.service.run_sql("update payout_accounts set refund_days = 7")

    assert line in await mail(payment_scene, unpaid, "seat")
    free = (await ada.create_event())["id"]
    ben = await payment_scene.register(free, "ben@example.com")
    assert "Refunds" not in await mail(payment_scene, ben, "seat")


async def mail(payment_scene: PaymentScene, buyer: Buyer, kind: Kind) -> str:
    """What a mail of a kind says to a guest, if it is written now."""
    [(public_id,)] = await payment_scene.service.run_sql(
        "select public_id from users where email = %(email)s", email=buyer.email
    )
    request = MailFactsRequest(0, 1, kind, "registration", buyer.event_id, public_id, None)
    facts = (await payment_scene.service.database.read(lambda reader: find_facts(reader, [request])))[0]
    arguments = MailArguments(buyer.event_id, public_id, 1, language="en")
    order = RegistrationMail(
        "ann@example.com", "1@tests", facts.now, kind, arguments, facts, "http://own/1-a-1-b", "http://event"
    )
    return message(order, MailBatch("http://events.test", "", "", [order])).text
