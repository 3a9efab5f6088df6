"""Failures of the processor: a held seat is neither lost nor given twice, and no payment is kept without one."""

import pytest
from prometheus_client import REGISTRY

from holdfast_demo.stripe.errors import Fault
from tests.helpers.event_visitor import page_text
from tests.helpers.payments import PaymentScene, own_page_path

ANN = "ann@example.com"


@pytest.mark.parametrize("kind", ["before", "after", "down"])
async def test_a_checkout_is_opened_once_even_if_the_first_answer_is_lost(
    payment_scene: PaymentScene, kind: str
) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault(kind, "/checkout/sessions"))  # pyright: ignore[reportArgumentType]
    ann = await payment_scene.register(event_id, ANN)
    assert "is being prepared" in page_text(await ann.page())

    await payment_scene.service.run_sql("update payments set due_at = now()")
    await payment_scene.work()

    assert len(payment_scene.processor.things("checkout.session")) == 1
    await ann.pay()
    await payment_scene.deliver()
    assert await ann.status() == "registered"


async def test_a_page_of_a_held_seat_refreshes_until_the_checkout_is_ready(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault("before", "/checkout/sessions"))
    ann = await payment_scene.register(event_id, ANN)
    own_url = await own_page_path(payment_scene, ann)
    assert '<meta http-equiv="refresh" content="5">' in (await ann.visitor.http.get(own_url)).text

    await payment_scene.service.run_sql("update payments set due_at = now()")
    await payment_scene.work()

    page = await ann.visitor.http.get(own_url)
    assert ("Pay €12.00" in page_text(page), "http-equiv" in page.text) == (True, False)


async def test_a_checkout_opened_without_an_answer_is_recognized_by_its_payment(payment_scene: PaymentScene) -> None:
    """Stripe repeats an error of its own for the key of a call, also if it has acted."""
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault("remembered", "/checkout/sessions"))
    ann = await payment_scene.register(event_id, ANN)
    [session] = payment_scene.processor.things("checkout.session")

    payment_scene.processor.pay(session["id"])
    await payment_scene.deliver()

    assert await ann.status() == "registered"


@pytest.mark.parametrize(("hours", "state"), [(2, "held"), (25, "rejected")])
async def test_a_checkout_never_known_to_open_is_tried_again_after_its_end_for_a_day(
    payment_scene: PaymentScene, hours: int, state: str
) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault("remembered", "/checkout/sessions"))
    ann = await payment_scene.register(event_id, ANN)
    await payment_scene.time_is_up()
    assert len(payment_scene.processor.things("checkout.session")) == 1
    assert await payment_scene.counts(event_id) == {"held": 1}

    # Five minutes more to pay than before: the clock of the test does not move, and the new page ends at another time.
    await payment_scene.service.run_sql(
        "update payments set checkout = jsonb_set(checkout, '{ends_at}', '\"2020-01-01T00:00:00Z\"'), due_at = now(),"
        " inserted_at = now() - %(hours)s * interval '1 hour', ends_at = now() + interval '20 minutes'"
        " - %(hours)s * interval '1 hour'",
        hours=hours,
    )
    await payment_scene.work()

    assert await ann.status() == state
    assert bool(await ann.link()) is (state == "held")


async def test_a_payment_that_the_processor_refuses_gives_the_seat_away_and_says_why(
    payment_scene: PaymentScene,
) -> None:
    """The account that the money goes to is closed."""
    event_id = await payment_scene.event(await payment_scene.organizer())
    await payment_scene.service.run_sql("update payout_accounts set account_id = 'acct_closed'")

    ann = await payment_scene.register(event_id, ANN)

    assert await ann.status() == "rejected"
    assert "could not be taken" in page_text(await ann.page())
    [(error,)] = await payment_scene.service.run_sql("select error from payments")
    assert error


async def test_a_processor_that_is_away_when_the_time_is_up_keeps_the_seat_held(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    await payment_scene.register(event_id, ANN)
    payment_scene.processor.plan(Fault("down", "/checkout", times=2))
    payment_scene.processor.plan(Fault("down", "/checkout", method="GET", times=2))

    deferred = deferred_calls()
    await payment_scene.time_is_up()
    assert await payment_scene.counts(event_id) == {"held": 1}
    assert deferred_calls() > deferred

    payment_scene.processor.heal()
    await payment_scene.time_is_up()
    assert await payment_scene.counts(event_id) == {"rejected": 1}


async def test_a_checkout_that_expires_gives_the_seat_away(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    ann = await payment_scene.register(event_id, ANN)

    payment_scene.processor.clock.advance(2 * 3600)
    await payment_scene.deliver()

    assert await ann.status() == "rejected"


async def test_a_payment_that_comes_after_the_seat_was_given_away_goes_back(payment_scene: PaymentScene) -> None:
    """As after a restored backup: the service believes that the page had ended."""
    event_id = await payment_scene.event(await payment_scene.organizer(), waitinglist_capacity=1)
    ann = await payment_scene.register(event_id, ANN)
    await payment_scene.register(event_id, "ben@example.com")
    await payment_scene.service.run_sql(
        "with changed as (update registrations set status = 'rejected', reason = 'payment_expired', held_until = null"
        "                where status = 'held')"
        " update payments set state = 'ended'"
    )
    await ann.pay()
    await payment_scene.deliver()

    assert payment_scene.moved_amount("refund") == 1200
    assert "goes back to you in full" in page_text(await ann.page())


async def test_a_late_payment_takes_the_seat_if_the_waiting_list_is_empty(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer())
    ann = await payment_scene.register(event_id, ANN)
    await payment_scene.service.run_sql(
        "with changed as (update registrations set status = 'rejected', reason = 'payment_expired', held_until = null)"
        " update payments set state = 'ended'"
    )
    await ann.pay()
    await payment_scene.deliver()

    assert await ann.status() == "registered"
    assert payment_scene.moved_amount("refund") == 0


def deferred_calls() -> float:
    """How many rows of payments this process has deferred, as the metrics say."""
    return REGISTRY.get_sample_value("holdfast_payment_calls_total", {"of": "payments", "how": "deferred"}) or 0
