"""The messages about the refunds of one cancelled event delay no other organizer, however many they are.

`HOLDFAST_SOAK=200000 pytest -s` stores 200,000, and prints what it took until the last of them was fanned out.
"""

import os
import time
from statistics import median

import psutil

from holdfast.kit.background import row_work
from holdfast.kit.webhooks.fan_out import FAN_OUT_BATCH_SIZE, FAN_OUT_LOOP
from holdfast.kit.webhooks.sending import DeliveryWork
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms

SOAK = "HOLDFAST_SOAK" in os.environ
MESSAGES = max(int(os.environ.get("HOLDFAST_SOAK", "0")), 3 * FAN_OUT_BATCH_SIZE)
MAX_STORED = 50_000
"""The most messages that one statement stores, in less than its time limit."""

MEASUREMENTS = 5

# A refund stores its message in a transaction of its own. Many at once delay others more.
STORE_MESSAGES = """
    insert into webhook_messages (tenant_id, type, subject, data)
    select %(organizer)s, 'registration.refunded', 'event 1',
           jsonb_build_object('event_id', 1, 'user_id', 'u7Qk2xYd', 'amount', 1250, 'currency', 'EUR',
                              'reason', 'event_cancelled')
      from generate_series(1, %(count)s::bigint)
"""


async def seconds_until_delivery(program: OrganizerProgram, event_id: int, title: str) -> float:
    """Change an event, and wait until the program of its organizer has the message."""
    count, began = len(program.receiver.received), time.monotonic()
    await program.organizer.patch(f"/api/events/{event_id}", {"event": {"title": title}})
    await eventually(lambda: len(program.receiver.received) > count)
    return time.monotonic() - began


async def test_the_messages_about_one_cancelled_event_delay_no_other_organizer(
    service: Service, programs: OrganizerPrograms
) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    busy, calm = await programs.add(ada), await programs.add(ben)
    event = await ben.create_event()
    for first in range(0, MESSAGES, MAX_STORED):
        await service.run_sql(STORE_MESSAGES, organizer=ada.id, count=min(MAX_STORED, MESSAGES - first))

    process = psutil.Process()
    memory, began = process.memory_info().rss, time.monotonic()
    loops = (FAN_OUT_LOOP.run(service.database), row_work.run(service.database, DeliveryWork(service.database)))
    async with run_in_background(*loops):
        delays = [
            await seconds_until_delivery(calm, event["id"], f"Evening {number}") for number in range(MEASUREMENTS)
        ]
        delivered_meanwhile = len(busy.receiver.received)
        while SOAK and await service.run_sql("select from webhook_messages where not is_fanned_out limit 1"):
            delays.append(await seconds_until_delivery(calm, event["id"], f"Evening {len(delays)}"))
    print(
        f"{MESSAGES} messages: fanned out in {time.monotonic() - began:.0f} s,"
        f" of which {len(busy.receiver.received)} were delivered meanwhile; others waited {median(delays):.2f} s"
        f" (median of {len(delays)}), {max(delays):.2f} s at most;"
        f" memory grew by {(process.memory_info().rss - memory) / 2**20:.0f} MB, with what the receiver keeps"
    )
    assert delivered_meanwhile < MESSAGES
