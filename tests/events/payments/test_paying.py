"""Paying for a seat: held, paid and kept; or not paid in time, and given to the next."""

import re

from tests.helpers.event_visitor import Visitor, page_text
from tests.helpers.payments import PaymentScene

ANN, BEN, CEM = "ann@example.com", "ben@example.com", "cem@example.com"


async def test_a_seat_is_held_until_it_is_paid_and_then_belongs_to_the_person(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)

    ann = await payment_scene.register(event_id, ANN)
    assert await ann.status() == "held"
    page = page_text(await ann.page())
    assert "Pay €12.00" in page
    link = await ann.link()
    assert link
    assert link.startswith(payment_scene.processor.address)
    assert (await ada.get(f"/api/events/{event_id}")).json()["data"]["registration_count"] == 1
    assert await payment_scene.counts(event_id) == {"held": 1}

    await ann.pay()
    assert await payment_scene.deliver()

    assert await ann.status() == "registered"
    assert "You have paid €12.00" in page_text(await ann.page())
    [registration] = (await ada.get(f"/api/registrations?event_id={event_id}")).json()["data"]
    assert (registration["status"], registration["amount_paid"]) == ("registered", 1200)
    assert (
        payment_scene.moved_amount("charge"),
        payment_scene.moved_amount("application_fee"),
        payment_scene.moved_amount("refund"),
    ) == (
        1200,
        60,
        0,
    )


async def test_a_seat_that_is_not_paid_in_time_goes_to_the_next_who_gets_time_to_pay(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, waitinglist_capacity=5)
    ann = await payment_scene.register(event_id, ANN)
    ben = await payment_scene.register(event_id, BEN)
    assert await ben.status() == "waitlisted"

    await payment_scene.time_is_up()

    assert await ann.status() == "rejected"
    page = await ann.page()
    assert "not paid in time" in page_text(page)
    [form] = re.findall(r'href="([^"]+)">Register again', page.text)
    assert "Join the waiting list" in page_text(await ann.visitor.http.get(form))
    assert await ben.status() == "held"
    await payment_scene.work()
    await ben.pay()
    await payment_scene.deliver()
    assert await ben.status() == "registered"
    assert await payment_scene.counts(event_id) == {"rejected": 1, "registered": 1}


async def test_a_payment_that_was_made_in_the_last_moment_gets_the_seat(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    ann = await payment_scene.register(event_id, ANN)
    await ann.pay()

    await payment_scene.time_is_up()

    assert await ann.status() == "registered"


async def test_a_held_seat_is_not_free_for_others(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), waitinglist_capacity=1)

    people = [await payment_scene.register(event_id, email) for email in (ANN, BEN)]

    assert [await person.status() for person in people] == ["held", "waitlisted"]
    assert "All seats are taken." in page_text(await Visitor(payment_scene.service).open(event_id))


async def test_a_person_whose_held_seat_is_cancelled_cannot_pay_for_it(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)
    ann = await payment_scene.register(event_id, ANN)
    handle = ann.path.split("-")[1]

    assert (await ada.delete(f"/api/registrations/{event_id}/{handle}")).status_code == 204
    await payment_scene.work()

    session = payment_scene.processor.things("checkout.session")[0]
    assert session["status"] == "expired"
    assert await payment_scene.counts(event_id) == {}


async def test_a_payment_made_while_the_registration_is_removed_is_refunded_once(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)
    ann = await payment_scene.register(event_id, ANN)
    handle = ann.path.split("-")[1]

    await ann.pay()
    await ada.delete(f"/api/registrations/{event_id}/{handle}")
    await payment_scene.work()
    await payment_scene.deliver()
    await payment_scene.deliver()

    assert (
        payment_scene.moved_amount("charge"),
        payment_scene.moved_amount("refund"),
        payment_scene.moved_amount("application_fee_refund"),
    ) == (
        1200,
        1200,
        60,
    )
    assert payment_scene.moved_amount("transfer_reversal") == payment_scene.moved_amount("transfer")


async def test_a_cancelled_event_refunds_its_payments_in_full(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, capacity=3)
    people = [await payment_scene.register(event_id, email) for email in (ANN, BEN, CEM)]
    for person in people[:2]:
        await person.pay()
    await payment_scene.deliver()

    await ada.delete(f"/api/events/{event_id}")
    await payment_scene.work()
    await payment_scene.deliver()

    assert (payment_scene.moved_amount("charge"), payment_scene.moved_amount("refund")) == (2400, 2400)
    assert {session["status"] for session in payment_scene.processor.things("checkout.session")} == {
        "complete",
        "expired",
    }


async def test_a_hold_that_ends_on_another_day_names_the_day(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    ann = await payment_scene.register(event_id, ANN)
    assert re.search(r"held for you until \d+:\d+", page_text(await ann.page()))

    await payment_scene.service.run_sql("update registrations set held_until = now() + interval '25 hours'")

    assert re.search(r"held for you until \w+ \d+, \d{4}", page_text(await ann.page()))


async def test_capacity_cannot_be_lowered_below_the_seats_that_are_held_or_paid(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, capacity=3, waitinglist_capacity=5)
    ann, _, _, dan = [await payment_scene.register(event_id, email) for email in (ANN, BEN, CEM, "dan@example.com")]
    await ann.pay()
    await payment_scene.deliver()

    async def resize(capacity: int) -> int:
        answer = await ada.patch(f"/api/events/{event_id}", {"event": {"capacity": capacity}})
        return answer.status_code

    assert await resize(2) == 422
    assert await payment_scene.counts(event_id) == {"registered": 1, "held": 2, "waitlisted": 1}
    assert await dan.status() == "waitlisted"

    # A hold that has ended is given to who waits, as before.
    await payment_scene.time_is_up()
    assert await payment_scene.counts(event_id) == {"registered": 1, "held": 1, "rejected": 2}
    assert await resize(1) == 422
    assert await resize(2) == 200
    await dan.pay()
    await payment_scene.deliver()
    assert [await ann.status(), await dan.status()] == ["registered", "registered"]
    assert (payment_scene.moved_amount("charge"), payment_scene.moved_amount("refund")) == (2400, 0)
