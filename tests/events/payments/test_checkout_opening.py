"""Checkouts are opened in order of arrival, also when that takes long. The time to pay begins when one is ready."""

import asyncio
import datetime as dt
import re
import time

import pytest

from holdfast.events.payments import checkout, due
from holdfast.kit.background import row_work
from holdfast_demo.stripe.errors import Fault
from tests.helpers.background_loops import run_in_background
from tests.helpers.event_visitor import Visitor, page_text
from tests.helpers.events_service import eventually
from tests.helpers.payments import Buyer, PaymentScene, handle_payments

ANN, BEN = "ann@example.com", "ben@example.com"
HOLD = dt.timedelta(minutes=15)


async def hold_seat(payment_scene: PaymentScene, event_id: int, email: str = ANN) -> Buyer:
    """A guest whose seat is held, and whose page was not asked for yet."""
    visitor = Visitor(payment_scene.service)
    buyer = Buyer(payment_scene, visitor, await visitor.register(event_id, email), event_id, email)
    await payment_scene.service.settle()
    return buyer


async def pass_minutes(payment_scene: PaymentScene, minutes: int) -> None:
    """Let the seats be held for this many minutes more, and what is to be done with the processor be due."""
    await payment_scene.service.run_sql(
        """
        with held as (update registrations set held_until = held_until - %(time)s where status = 'held')
        update payments
           set inserted_at = inserted_at - %(time)s, ends_at = ends_at - %(time)s, due_at = now(),
               checkout = checkout || jsonb_build_object(
                   'ends_at', to_jsonb((checkout ->> 'ends_at')::timestamptz - %(time)s))
         where state in ('opening', 'open')
        """,
        time=dt.timedelta(minutes=minutes),
    )


async def time_left(payment_scene: PaymentScene) -> dt.timedelta:
    """How long the only payment can still be made. The registration says the same."""
    [(left, differs)] = await payment_scene.service.run_sql(
        "select ends_at - now(), ends_at is distinct from held_until"
        " from payments join registrations using (event_id, user_id, arrival) where state in ('opening', 'open')"
    )
    assert not differs
    assert isinstance(left, dt.timedelta)
    return left


def is_whole(left: dt.timedelta) -> bool:
    return HOLD - dt.timedelta(minutes=1) < left <= HOLD


@pytest.mark.parametrize("minutes", [10, 20, 50, 2000])
async def test_a_person_whose_checkout_opens_late_keeps_the_seat_and_has_the_whole_time_to_pay(
    payment_scene: PaymentScene, minutes: int
) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    ann = await hold_seat(payment_scene, event_id)
    waits = page_text(await ann.page())
    assert "Your time to pay begins when it is ready" in waits
    assert "until" not in waits

    await pass_minutes(payment_scene, minutes)
    await payment_scene.work()

    assert is_whole(await time_left(payment_scene))
    assert "A seat is held for you until" in page_text(await ann.page())
    await ann.pay()
    await payment_scene.deliver()
    assert await ann.status() == "registered"


async def test_a_person_who_returns_from_paying_sees_no_second_request_to_pay_and_soon_the_seat(
    payment_scene: PaymentScene,
) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    ann = await hold_seat(payment_scene, event_id)
    await payment_scene.work()
    [session] = payment_scene.processor.things("checkout.session")
    await ann.pay()

    back = await ann.visitor.http.get(session["success_url"])
    assert "Thank you. A seat is held for you." in page_text(back)
    assert "Pay €" not in page_text(back)
    assert re.search(r'data-refresh="[12]"', back.text)
    await payment_scene.deliver()
    assert "You have a seat." in page_text(await ann.visitor.http.get(session["success_url"]))


async def test_the_time_to_pay_begins_when_a_slow_processor_has_answered(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault("slow", "/checkout/sessions", seconds=1))
    await hold_seat(payment_scene, event_id)
    calling = asyncio.create_task(handle_payments(payment_scene.service.database, checkout.OPENING))
    await eventually(lambda: payment_scene.processor.things("checkout.session"))
    await pass_minutes(payment_scene, 20)
    await calling
    await payment_scene.work()

    assert is_whole(await time_left(payment_scene))
    assert len(payment_scene.processor.things("checkout.session")) == 1


@pytest.mark.parametrize("minutes", [20, 40, 90])
async def test_a_person_has_the_whole_time_to_pay_after_an_outage_of_the_processor(
    payment_scene: PaymentScene, minutes: int
) -> None:
    """After 40 minutes it would not open the page that it was told of; after 90 minutes that page has ended."""
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault("down", "/checkout/sessions"))
    ann = await payment_scene.register(event_id, ANN)

    await pass_minutes(payment_scene, minutes)
    await payment_scene.work()

    assert is_whole(await time_left(payment_scene))
    [session] = payment_scene.processor.things("checkout.session")
    assert session["expires_at"] > time.time() + 30 * 60
    await ann.pay()
    await payment_scene.deliver()
    assert await ann.status() == "registered"


async def test_a_person_who_moved_up_has_the_whole_time_to_pay_after_an_outage(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), waitinglist_capacity=1)
    await payment_scene.register(event_id, ANN)
    ben = await hold_seat(payment_scene, event_id, BEN)
    payment_scene.processor.plan(Fault("down", "/checkout/sessions$"))
    await payment_scene.time_is_up()
    assert await ben.status() == "held"

    await pass_minutes(payment_scene, 30)
    await payment_scene.work()

    assert dt.timedelta(hours=11.9) < await time_left(payment_scene) <= dt.timedelta(hours=12)


async def test_a_checkout_is_not_opened_for_a_removed_registration(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)
    ann = await hold_seat(payment_scene, event_id)

    await ada.delete(f"/api/registrations/{event_id}/{ann.path.split('-')[1]}")
    await payment_scene.work()

    assert payment_scene.processor.things("checkout.session") == []
    assert await payment_scene.service.run_sql("select state::text from payments") == [("ended",)]


async def test_a_checkout_is_not_opened_for_a_cancelled_event(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)
    ann = await hold_seat(payment_scene, event_id)

    await ada.delete(f"/api/events/{event_id}")
    await payment_scene.work()

    assert payment_scene.processor.things("checkout.session") == []
    assert "The event is cancelled" in page_text(await ann.page())


async def test_a_person_removed_while_the_checkout_opens_gets_no_time_to_pay(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada)
    payment_scene.processor.plan(Fault("after", "/checkout/sessions"))
    ann = await payment_scene.register(event_id, ANN)

    await ada.delete(f"/api/registrations/{event_id}/{ann.path.split('-')[1]}")
    await payment_scene.work()

    assert [session["status"] for session in payment_scene.processor.things("checkout.session")] == ["expired"]
    assert await payment_scene.service.run_sql("select state::text from payments") == [("ended",)]


async def test_concurrent_processes_open_the_same_checkout_with_the_same_request(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault("slow", "/checkout/sessions", seconds=1))
    await hold_seat(payment_scene, event_id)
    calling = asyncio.create_task(handle_payments(payment_scene.service.database, checkout.OPENING))
    await eventually(lambda: payment_scene.processor.things("checkout.session"))
    await pass_minutes(payment_scene, 0)
    await handle_payments(payment_scene.service.database, checkout.OPENING)
    await calling

    assert len(payment_scene.processor.things("checkout.session")) == 1


async def test_checkouts_are_opened_in_order_of_arrival_also_after_a_delay(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), capacity=6)
    people = [f"p{number}@example.com" for number in range(6)]
    for email in people:
        await hold_seat(payment_scene, event_id, email)
    await payment_scene.service.run_sql("update payments set due_at = now() - id * interval '1 second'")

    await handle_payments(payment_scene.service.database, checkout.OPENING._replace(max_concurrent=1))

    assert [session["customer_email"] for session in payment_scene.processor.things("checkout.session")] == people


async def test_a_payment_does_not_wait_until_all_checkouts_are_opened(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), capacity=5)
    ann = await payment_scene.register(event_id, ANN)
    payment_scene.processor.plan(Fault("slow", "/checkout/sessions", times=9, seconds=4))
    for number in range(3):
        await hold_seat(payment_scene, event_id, f"p{number}@example.com")
    tables = [kind._replace(max_concurrent=1) for kind in (checkout.OPENING, checkout.FOLLOWING)]

    async def is_seated() -> bool:
        return await ann.status() == "registered"

    works = due.payment_rows(payment_scene.service.database, tables)
    async with run_in_background(*(row_work.run(payment_scene.service.database, work) for work in works)):
        await ann.pay()
        await payment_scene.deliver_messages()
        await eventually(is_seated)
        assert await payment_scene.service.run_sql("select count(*) from payments where state = 'opening'") == [(3,)]


async def test_a_processor_that_limits_calls_gets_none_for_as_long_as_it_says(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), capacity=2)
    await hold_seat(payment_scene, event_id)
    await hold_seat(payment_scene, event_id, BEN)
    payment_scene.processor.plan(Fault("limited", "/checkout/sessions", seconds=1))
    began = time.monotonic()
    [work] = due.payment_rows(payment_scene.service.database, [checkout.OPENING._replace(max_concurrent=1)])
    async with run_in_background(row_work.run(payment_scene.service.database, work)):
        await eventually(lambda: payment_scene.processor.things("checkout.session"))
        assert time.monotonic() - began >= 1
        await eventually(lambda: len(payment_scene.processor.things("checkout.session")) == 2)


@pytest.mark.parametrize(("kind", "least", "most"), [("limited", 40, 41), ("locked", 0, 2)])
async def test_a_checkout_is_delayed_for_as_long_as_the_processor_says(
    payment_scene: PaymentScene, kind: str, least: int, most: int
) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault(kind, "/checkout/sessions", seconds=40))  # pyright: ignore[reportArgumentType]
    began = time.monotonic()

    await payment_scene.register(event_id, ANN)

    [(pause, error)] = await payment_scene.service.run_sql(
        "select extract(epoch from due_at - now())::float8, error from payments"
    )
    assert least - (time.monotonic() - began) <= float(str(pause)) <= most
    assert "Too many requests" in str(error)
    assert await payment_scene.counts(event_id) == {"held": 1}
