"""Payments leased by a killed process are due again soon; late results of a stalled process are not stored."""

import asyncio
import contextlib

import pytest

from holdfast.events.payments import checkout, due
from holdfast.kit.background import row_work
from holdfast_demo.stripe.errors import Fault
from tests.helpers.events_service import eventually
from tests.helpers.payments import PaymentScene, handle_payments

ANN = "ann@example.com"


async def begin(payment_scene: PaymentScene, seconds: float) -> "asyncio.Task[int]":
    """Have a page opened by a call that takes a while. Returns when the call is under way."""
    event_id = await payment_scene.event(await payment_scene.organizer())
    payment_scene.processor.plan(Fault("slow", "/checkout/sessions", seconds=seconds))
    await payment_scene.register_without_work(event_id, ANN)
    opens = asyncio.create_task(handle_payments(payment_scene.service.database, checkout.OPENING))
    await eventually(lambda: payment_scene.service.run_sql("select from payments where due_at > now()"))
    return opens


async def test_a_payment_that_a_killed_process_had_leased_is_due_again_within_fifteen_seconds(
    payment_scene: PaymentScene,
) -> None:
    dies = await begin(payment_scene, seconds=30)
    dies.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await dies

    [(seconds,)] = await payment_scene.service.run_sql(
        "select extract(epoch from due_at - now())::float8 from payments"
    )
    assert float(str(seconds)) + row_work.POLL_SECONDS <= 15


@pytest.mark.usefixtures("short_leases")
async def test_a_payment_that_a_process_works_on_is_leased_by_no_other_process(payment_scene: PaymentScene) -> None:
    opens = await begin(payment_scene, seconds=2)

    handled_by_others = 0
    while not opens.done():
        handled_by_others += await handle_payments(payment_scene.service.database, checkout.OPENING)
        await asyncio.wait([opens], timeout=0.05)

    assert handled_by_others == 0
    [(state, lease_id)] = await payment_scene.service.run_sql("select state::text, lease_id from payments")
    assert (state, lease_id) == ("open", None)


async def test_a_process_that_lost_its_lease_stores_nothing(payment_scene: PaymentScene) -> None:
    opens = await begin(payment_scene, seconds=1)
    await payment_scene.service.run_sql(
        "update payments set lease_id = gen_random_uuid(), due_at = now() + interval '1 hour'"
    )
    await opens

    [(state, session_id, attempts)] = await payment_scene.service.run_sql(
        "select state::text, session_id, attempts from payments"
    )
    assert (state, session_id, attempts) == ("opening", None, 1)

    # The process that has it now makes the same call, and gets the same page.
    await payment_scene.service.run_sql("update payments set due_at = now()")
    await payment_scene.work()
    assert len(payment_scene.processor.things("checkout.session")) == 1
    assert await payment_scene.service.run_sql("select from payments where state = 'open'")


async def test_a_payment_that_becomes_due_during_its_work_is_due_when_the_work_ends(
    payment_scene: PaymentScene,
) -> None:
    opens = await begin(payment_scene, seconds=1)
    await payment_scene.service.run_sql("update payments set due_at = now()")

    assert await opens == 1

    assert await payment_scene.service.run_sql("select from payments where state = 'open' and due_at <= now()")


async def test_a_process_does_not_lease_a_row_again_while_it_handles_the_row(payment_scene: PaymentScene) -> None:
    database = payment_scene.service.database
    work = due.PaymentWork(database, checkout.OPENING, due.ProcessorAccess())
    await payment_scene.register_without_work(await payment_scene.event(await payment_scene.organizer()), ANN)
    handled = await work.lease(2, (), scan_all=True)
    await payment_scene.service.run_sql("update payments set due_at = now()")

    excluded = work.busy_keys(handled)
    assert await work.lease(2, excluded, scan_all=True) == []
    assert await database.read(lambda reader: work.seconds_until_due(reader, excluded)) is None
    assert [row.key for row in await work.lease(2, (), scan_all=True)] == [row.key for row in handled]
