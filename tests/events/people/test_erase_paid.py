"""Erasing a person whose paid seat goes to another, also if the other is erased at the same time."""

import asyncio

from holdfast.events import ownership
from holdfast.events.people.model import AccountSelector, Erasure
from holdfast.events.resources import Tx
from tests.helpers.locked_rows import hold_locks, wait_for_lock_waiters
from tests.helpers.payments import PaymentScene
from tests.helpers.people import ANN, BOB, erase


async def test_an_erasure_whose_seat_goes_to_a_person_who_is_erased_too_is_not_retried(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, waitinglist_capacity=5)
    await (await payment_scene.register(event_id, "ann@example.com")).pay()
    await payment_scene.deliver()
    await payment_scene.register(event_id, "bob@example.com")
    await payment_scene.register(event_id, "cal@example.com")
    runs: list[AccountSelector] = []

    async def erase_once(selector: AccountSelector) -> Erasure:
        async def counted(tx: Tx) -> Erasure:
            runs.append(selector)
            return await ownership.erase(tx, selector)

        return await payment_scene.service.database.transact(counted)

    async with hold_locks(
        payment_scene.service.database.url, f"select from events where id = {event_id} for update"
    ) as event:
        ann = asyncio.create_task(erase_once(ANN))
        await wait_for_lock_waiters(payment_scene.service.run_sql, 1)
        bob = asyncio.create_task(erase_once(BOB))
        await wait_for_lock_waiters(payment_scene.service.run_sql, 2)
        await event.rollback()
        await asyncio.gather(ann, bob)

    assert runs == [ANN, BOB]
    assert await payment_scene.counts(event_id) == {"held": 1}


async def test_a_seat_that_was_held_for_an_erased_person_goes_to_the_next_in_line(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.organizer()
    event_id = await payment_scene.event(ada, waitinglist_capacity=5)
    await payment_scene.register(event_id, "ann@example.com")
    await payment_scene.register(event_id, "bob@example.com")

    await erase(payment_scene.service)

    assert await payment_scene.counts(event_id) == {"held": 1}
