"""A payment processor that takes very long to answer delays nothing else, and holds no lock."""

import asyncio
import time

from holdfast.events.payments import part as payments
from holdfast.events.settings import Settings
from holdfast_demo.stripe.errors import Fault
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import eventually
from tests.helpers.payments import handle_payments, open_payment_scene

DELAY_SECONDS = 12
"""How long the processor takes."""


async def test_a_processor_that_does_not_answer_delays_nothing_else(settings: Settings) -> None:
    async with open_payment_scene(settings) as scene:
        ada = await scene.organizer()
        paid = await scene.event(ada, capacity=50)
        free = (await ada.create_event(capacity=50))["id"]
        scene.processor.plan(Fault("slow", "/checkout/sessions", times=50, seconds=DELAY_SECONDS))
        database = scene.service.database
        await Visitor(scene.service).register(paid, "ann@example.com")
        await scene.service.settle()
        began = time.monotonic()
        calling = asyncio.create_task(handle_payments(database, payments.PAYMENT_TABLES[0]))
        try:
            # The call is on its way: the session exists, and its answer does not come.
            await eventually(lambda: scene.processor.things("checkout.session"))

            for event in (paid, free):
                for number in range(10):
                    await Visitor(scene.service).register(event, f"p{number}@example.com")
                await scene.service.settle()
            polls = [await ada.get(f"/api/registrations?event_id={event}") for event in (paid, free)]
            held = [
                pid
                for (pid,) in await scene.service.run_sql(
                    "select pid from pg_stat_activity where state like 'idle in transaction%%'"
                    " and pid <> pg_backend_pid() and datname = current_database()"
                )
            ]

            assert [poll.status_code for poll in polls] == [200, 200]
            assert len(polls[1].json()["data"]) == 10
            assert await scene.counts(paid) == {"held": 11}
            assert held == []
            assert not calling.done()
            assert time.monotonic() - began < DELAY_SECONDS
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
