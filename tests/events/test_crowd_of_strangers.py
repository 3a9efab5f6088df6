"""A crowd from one address waits for itself: strangers at other addresses, partners and organizers notice nothing."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from holdfast.kit.operations.slots import MAX_WAITING
from tests.events.pages.own_registration import register_and_settle
from tests.helpers.events_service import Service
from tests.helpers.locked_rows import hold_locks
from tests.helpers.payments import EVENT_BODY, PaymentScene, signature_header

CROWD = MAX_WAITING + 50
OTHERS = ("198.51.100.7", "2001:db8:7::1")


@contextlib.asynccontextmanager
async def crowd_from(service: Service, host: str, paths: list[str], locked_table: str) -> AsyncGenerator[None]:
    """Let a crowd from one address wait for pages that need a table, which is locked until the block ends."""
    statement = f"lock table {locked_table} in access exclusive mode".encode()
    async with hold_locks(service.database.url, statement) as blocker, service.client_at(host) as http:
        crowd = [asyncio.create_task(http.get(path)) for path in paths for _ in range(CROWD // len(paths))]
        await blocker.wait_for_waiters()
        yield
        assert not all(task.done() for task in crowd)
        await blocker.rollback()
        await asyncio.gather(*crowd)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
async def test_strangers_at_other_addresses_register_sign_in_and_read_beside_a_crowd(
    service: Service, host: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    [ann] = await register_and_settle(service, ada, event, "ann")
    statuses: list[int] = []

    async with crowd_from(service, host, [f"{ann}?receipt"], "registrations"):
        for number, other in enumerate(OTHERS):
            async with service.client_at(other) as http:
                organizer = {
                    "name": "Ben Events",
                    "email": f"ben{number}@crowd.example",
                    "slug": f"beside-a-crowd-{number}",
                }
                answers = [
                    await http.post("/api/organizers/register", json={"organizer": organizer}),
                    await http.get(f"/organizers/{ada.slug}"),
                    await http.get("/log/keys"),
                    await http.get("/sign-in"),
                ]
                statuses += [answer.status_code for answer in answers]

    assert statuses == [201, 200, 200, 200] * 2


async def test_a_message_of_the_payment_processor_is_accepted_beside_a_crowd(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer()
    event = await ada.create_event()
    [ann] = await register_and_settle(payment_scene.service, ada, event, "ann")

    async with crowd_from(payment_scene.service, "192.0.2.1", [f"{ann}?receipt"], "registrations"):
        status = await payment_scene.tell(signature_header(EVENT_BODY), EVENT_BODY)

    assert status == 204


async def test_a_crowd_that_reads_a_log_does_not_delay_other_addresses(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    async with crowd_from(service, "192.0.2.1", [f"/log/events/{event['id']}/checkpoint"], "log_heads"):
        async with service.client_at(OTHERS[0]) as http:
            page = await http.get(f"/organizers/{ada.slug}")
        listed = await ada.get("/api/queues")

    assert (page.status_code, listed.status_code) == (200, 200)
